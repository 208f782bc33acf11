# wbhome completion for elvish: asks the installed wbhome at shell start.
eval (E:COMPLETE=elvish wbhome | slurp)
