"""The OTLP receiver: where exporters of OpenTelemetry send by themselves."""
