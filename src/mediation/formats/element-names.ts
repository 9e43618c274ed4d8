/** Names of JSON members as names of XML elements (XML 1.0 2.3, without the colon) and back. */

const START = 'A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u3001-\ud7ff'
const INVALID_START = new RegExp(`^(?![${START}])`)
const INVALID = new RegExp(`[^${START}.0-9\u00b7-]`, 'g')

/** Prefixes of escaped names, as on the reference platform: of `$`, of a first character that only may follow. */
const DOLLAR = '_JsonReader_PS_'
const DIGIT = '_JsonReader_PD_'
/** Of any other character: its code unit follows, and `_`. */
const CODE = '_JsonReader_'
const ESCAPED = /_JsonReader_(\d{1,5})_/g

/** `escapes`: characters that XML excludes are written so that `decodeName` restores them; else they become `_`. */
export function encodeName(name: string, escapes: boolean): string {
  if (!escapes) {
    const tag = name.replace(INVALID, '_')
    return INVALID_START.test(tag) ? `_${tag}` : tag
  }
  const isDollar = name.startsWith('$')
  const tag = (isDollar ? name.slice(1) : name).replace(INVALID, found => `${CODE}${found.charCodeAt(0)}_`)
  if (isDollar) return DOLLAR + tag
  return INVALID_START.test(tag) ? DIGIT + tag : tag
}

export function decodeName(tag: string): string {
  if (!tag.includes(CODE)) return tag
  let name = tag
  if (name.startsWith(DOLLAR)) name = `$${name.slice(DOLLAR.length)}`
  else if (name.startsWith(DIGIT)) name = name.slice(DIGIT.length)
  return name.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number(code)))
}
