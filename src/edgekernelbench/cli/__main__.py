from edgekernelbench.cli.main import main

main()
