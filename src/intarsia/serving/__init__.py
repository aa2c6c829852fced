"""Behind servers of others: artifacts as models of KServe, over the Open Inference Protocol v2."""
