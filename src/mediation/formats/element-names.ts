/** Names of JSON members as names of XML elements (XML 1.0 2.3, without the colon) and back. */

const START = 'A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u3001-\ud7ff'
const INVALID_START = new RegExp(`^(?![${START}])`)
const INVALID = new RegExp(`[^${START}.0-9\u00b7-]`, 'g')

/** Prefixes of names, as on the reference platform: of `$`, and of a first character that may only follow. */
const DOLLAR = '_JsonReader_PS_'
const DIGIT = '_JsonReader_PD_'
/** Prefix of any other character: its code unit follows, and `_`. */
const CODE = '_JsonReader_'
const ESCAPED = /_JsonReader_(\d{1,5})_/g

/** Roots of the two forms, as on the reference platform. Names of fields within them are written as codes. */
export const FORM_ROOT = 'xformValues'
export const MULTIPART_ROOT = 'mediate'

/**
 * A first `$`, or a first character that may only follow, gets a prefix. `escapes`: other characters that XML excludes
 * are written as their codes, else as `_`.
 */
export function encodeName(name: string, escapes: boolean): string {
  const isDollar = name.startsWith('$')
  const written = (found: string) => (escapes ? `${CODE}${found.charCodeAt(0)}_` : '_')
  const tag = (isDollar ? name.slice(1) : name).replace(INVALID, written)
  if (isDollar) return DOLLAR + tag
  return INVALID_START.test(tag) ? DIGIT + tag : tag
}

/** The name that `encodeName` was given. `escapes`: codes of characters become characters. */
export function decodeName(tag: string, escapes: boolean): string {
  if (!tag.includes(CODE)) return tag
  let name = tag
  if (name.startsWith(DOLLAR)) name = `$${name.slice(DOLLAR.length)}`
  else if (name.startsWith(DIGIT)) name = name.slice(DIGIT.length)
  return escapes ? name.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number(code))) : name
}
