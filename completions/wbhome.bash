# wbhome completion for bash: asks the installed wbhome at shell start.
eval "$(COMPLETE=bash wbhome)"
