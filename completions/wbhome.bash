# wbhome completion for bash: asks the installed wbhome at shell start.
source <(COMPLETE=bash wbhome)
