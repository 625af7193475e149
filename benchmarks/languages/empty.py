# What starting and stopping costs.
