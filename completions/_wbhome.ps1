# wbhome completion for PowerShell: asks the installed wbhome at shell start.
$env:COMPLETE = "powershell"
wbhome | Out-String | Invoke-Expression
Remove-Item Env:\COMPLETE
