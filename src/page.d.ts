interface ImportMeta {
  /**
   * True in bundles for browsers, where the build puts it, and undefined elsewhere. A page is one rank and has nothing beside its files:
   * code for several ranks and for subfiles stands behind it, so that those bundles do not have it. So do loops that only save time
   * which a page spends elsewhere, in inflating or in waiting for a server.
   */
  readonly page?: boolean;
}
