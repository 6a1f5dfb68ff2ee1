"""The paper in one place.

``theory`` has its definitions, conditions and bounds as functions; ``studies`` its
simulations as data, with one beyond the paper, which ``runner`` runs and ``figures``
draws; ``table`` counts errors on real data. ``sdp`` and ``two_component`` are methods
that the paper compares with and that nothing else needs.
"""
