"""How far do momentum and a good start bring a plain recurrent network?

python examples/long_dependencies.py adding
python examples/long_dependencies.py memory20 --layers SimpleRNN AdamRNN --momenta 0 0.98
python examples/long_dependencies.py adding --updates 50000 --seeds 4 --pilot 5000

`keras_momentum_rnn.experiments.long_dependencies` tells more.
"""

from keras_momentum_rnn.experiments.long_dependencies import main

if __name__ == "__main__":
    main()
