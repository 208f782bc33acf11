# wbhome completion for fish: asks the installed wbhome at shell start.
COMPLETE=fish wbhome | source
