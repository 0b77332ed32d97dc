"""Client: asks any server that speaks Kafka's protocol, as its tools do. Blocking, one thread."""
