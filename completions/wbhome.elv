# wbhome completion for elvish: asks the installed wbhome at shell start.
eval (env COMPLETE=elvish wbhome | slurp)
