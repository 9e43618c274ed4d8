/** Java in the text of a script, which runs in JavaScript alone. */

/** Comments and texts in quotes. */
const NO_CODE = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g
const FORMS = [
  ...['Packages', 'importPackage', 'importClass', 'JavaImporter', 'JavaAdapter', 'Java\\.(?:type|to|from|extend)'],
  ...['javax?\\.[a-z]\\w*', '(?:org|com)\\.(?:apache|wso2|json|mozilla|google|fasterxml)'],
  'mc\\.get(?:Axis2)?MessageContext',
]
const JAVA = new RegExp(`(?<![\\w$.])(${FORMS.join('|')})(?![\\w$])`)
const REMEDY =
  "write it in JavaScript: mc.getProperty(name, 'transport') reads a field, base64Decode() of a <property> a text"
const CONTEXT_REMEDY =
  "write mc.getProperty(name, 'transport') for a field, mc.getProperty(name, 'axis2') for a property"

interface JavaUse {
  /** The name that the script uses, such as `Packages`. */
  readonly name: string
  /** Lines in front of it. */
  readonly linesBefore: number
  readonly remedy: string
}

/** The first use of Java in a script; null for none. */
export function javaIn(text: string): JavaUse | null {
  const code = text.replace(NO_CODE, found => found.replace(/[^\n]/g, ' '))
  const found = JAVA.exec(code)
  if (found === null) return null
  const name = found[1]!
  return {
    name,
    linesBefore: code.slice(0, found.index).split('\n').length - 1,
    remedy: name.startsWith('mc.') ? CONTEXT_REMEDY : REMEDY,
  }
}
