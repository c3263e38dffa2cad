"""`make chaos`: trials that kill and cut everything, and a judge of what is left.

Each trial is one person with one workspace: made, worked in, retired, brought back,
purged, while processes die and replies get lost. Some are about two sites: mirrors,
their promotion, copies of workspaces. Afterwards nothing may be stuck,
orphaned or lost. Many trials share one set of real servers, so each also suffers from
the faults of the others; what a trial asks for and breaks follows from its seed.
"""
