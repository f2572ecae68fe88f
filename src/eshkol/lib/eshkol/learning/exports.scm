;;; What (eshkol learning) exports, and (eshkol) with it.

(export
 ;; (eshkol learning layers)
 linear linear-layer linear-forward conv-forward pool-forward conv2d-backward maxpool2d-backward
 positional-encoding-layer rnn-cell lstm-cell gru-cell rnn-forward gru-forward lstm-forward
 transformer-encoder-layer transformer-decoder-layer transformer resnet-block inception-module
 xavier-uniform xavier-normal he-uniform he-normal uniform-init normal-init constant-init orthogonal-init
 weighted-loss combined-loss
 ;; (eshkol learning models)
 define-model sequential forward parameter model-parameters named-parameters model-state model-load-state!
 model-parameter-count model-train! model-eval! model-freeze! model-unfreeze! functional-call model-summary
 ;; (eshkol learning optimizers)
 sgd-step adam-step adamw-step lamb-step sgd-momentum-update adam-update adamw-update lamb-update rmsprop-update
 adagrad adadelta optimizer-sgd optimizer-adam optimizer-adamw optimizer-lamb optimizer-rmsprop optimizer-adagrad
 optimizer-adadelta optimizer-lion optimizer-nadam optimizer-radam optimizer-step optimizer-zero-grad
 optimizer-learning-rate optimizer-state optimizer-load-state!
 step-lr-scheduler multi-step-lr-scheduler exponential-lr-scheduler linear-lr-scheduler cosine-annealing-lr
 cosine-annealing-warm-restarts one-cycle-lr-scheduler plateau-lr-scheduler warmup-lr-scheduler lambda-lr-scheduler
 sequential-lr-scheduler chained-lr-scheduler scheduler-step
 clip-gradients clip-by-value gradient-norm l1-regularization l2-regularization
 ;; (eshkol learning training)
 compile-model! train-step train-on-batch train-epoch validate fit history-ref early-stopping check-should-stop
 freeze-layers load-pretrained fine-tune visualize-architecture visualize-gradients visualize-activations
 progress-bar update-progress
 tensorboard-logger log-scalar log-histogram log-image log-text close-logger
 ;; (eshkol learning metrics)
 accuracy precision recall f1-score confusion-matrix roc-auc r2-score mean-absolute-error mean-squared-error
 define-metric make-metric metric-update! metric-compute metric-reset!)
