"""Model servers behind an OpenAI-compatible address: which addresses are asked, and how patiently."""
