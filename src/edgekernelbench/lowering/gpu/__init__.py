"""GPU lowering: how loops spread over blocks and threads, and the default rules for it."""
