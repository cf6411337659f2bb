"""Language models behind agents, through Inspect (`inspect_ai`): providers, retries, rate limits,
logs and the log viewer are its own. Needs the extra ``models``; nothing else imports it."""
