/** The parts of node-forge that are loaded: each file by itself, because the whole of it takes 40 ms. */
declare module 'node-forge/lib/asn1.js' {
  const asn1: import('./der.ts').Asn1Codec
  export = asn1
}
declare module 'node-forge/lib/pbe.js' {
  const pbe: import('./password-cipher.ts').ForgePbe
  export = pbe
}
declare module 'node-forge/lib/util.js' {
  const util: import('./password-cipher.ts').ForgeUtil
  export = util
}
