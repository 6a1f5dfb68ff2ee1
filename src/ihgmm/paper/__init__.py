"""The paper in one place.

``theory`` has its formulas; ``studies`` its simulations as data, with one beyond it,
which ``runner`` runs and ``figures`` draws; ``table`` counts errors on real data. Only
the paper needs ``sdp`` and ``two_component``, methods that it compares with.
"""
