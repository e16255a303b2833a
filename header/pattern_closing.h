}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

#pragma GCC visibility pop

#endif  // MX_LIBRARY_VERSION
#endif  // MXNET_LIB_PATTERNS_H_
