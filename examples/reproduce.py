"""Do the layers do what the papers say? `keras_momentum_rnn.experiments.command` tells more.

python examples/reproduce.py digits
python examples/reproduce.py adding --layers LSTM MCRM --seeds 5
python examples/reproduce.py pmnist --budget paper --units 256 --layers LSTM AdamLSTM
"""

from keras_momentum_rnn.experiments.command import main

if __name__ == "__main__":
    main()
