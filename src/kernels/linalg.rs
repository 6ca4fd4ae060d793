//! Linear algebra on small dense matrices: principal axes, k-means centroids.
