"""What is done with a trained model: predict, evaluate, inspect, export."""
