"""python -m keras_momentum_rnn.tuning launch --workers 2 script.py"""

import sys

from keras_momentum_rnn.tuning.launch import main

if __name__ == "__main__":
    sys.exit(main())
