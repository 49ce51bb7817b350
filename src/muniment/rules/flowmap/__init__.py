"""The flow map (RC-23): where runs go wrong and what an intervention brings, estimated from logs. Pure."""
