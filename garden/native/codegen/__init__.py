"""From SSA and from the opcode table to object files."""
