"""What an exporter sends, as spans and logs: OTLP as protobuf or JSON, and the console's JSON. Pure."""
