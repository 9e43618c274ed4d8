/** The modules of node-forge that are used, each imported by itself: the whole package takes 40 ms to load. */
declare module 'node-forge/lib/asn1.js' {
  const asn1: import('./der.ts').Asn1Codec
  export = asn1
}
declare module 'node-forge/lib/pbe.js' {
  const pbe: import('./password-based-encryption.ts').ForgePbe
  export = pbe
}
declare module 'node-forge/lib/util.js' {
  const util: import('./password-based-encryption.ts').ForgeUtil
  export = util
}
