"""Sutskever, Martens, Dahl and Hinton (2013): their figures and tables, each with its command.

Figure 2           python -m papers.sutskever.oblong_quadratic
Tables 1, 2 and 3  python -m papers.sutskever.autoencoders
Table 5            python -m papers.sutskever.long_dependencies adding
Hessian-free       python -m papers.sutskever.hessian_free adding
Figure 5           python -m papers.sutskever.cg_beside_nag
"""
