"""What tests share: programs, engines, allocators, generators and evaluators. No test module imports another."""
