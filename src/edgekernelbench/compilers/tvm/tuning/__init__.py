"""Search for schedules of imported models with TVM's MetaSchedule, and replay of what was found."""
