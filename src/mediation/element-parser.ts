/** Reads attributes, texts and expressions of elements, with the errors that all mediators and endpoints share. */
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { parseXml, type XmlBounds, type XmlElement } from '../config/xml.ts'
import type { Expression } from './expression.ts'
import { ExpressionParser } from './expression-parser.ts'
import type { ExpressionSyntax } from './expression-syntax.ts'
import { SEQUENCE_NAMESPACE } from './functions.ts'
import { parsePattern } from './pattern.ts'
import { endOfGroup } from './closing-bracket.ts'
import { ARRAY_TARGET, element as xmlElement, selfContained, type XmlChild, type XmlElementNode } from './xml-tree.ts'

const BOUNDS: XmlBounds = { bytes: 1024 * 1024, elements: 10_000, depth: 100 }
const GIVEN_LENGTH_MAX = 200
/** Comments of the author. */
const IGNORED = ['description']
/** Elements of older releases of the reference platform, and what takes their place. */
const RENAMED: Readonly<Record<string, string>> = {
  rule: 'write <rewriterule>',
  suspendDurationOnFailure: 'write <initialDuration>, in milliseconds, within <suspendOnFailure>',
}

/** The root element of a file. `name`: of that element. Undefined after an error. */
export async function parseRoot(
  text: string,
  label: string,
  name: string,
  diagnostics: Diagnostics,
): Promise<XmlElement | undefined> {
  const root = await parseXml(text, label, name, diagnostics, BOUNDS)
  if (root === undefined || root.namespace === SEQUENCE_NAMESPACE) return root
  const hint = `add xmlns="${SEQUENCE_NAMESPACE}"`
  return diagnostics.error(root.where, 'xmlns', 'is not that of the sequence language', hint)
}

/** Methods that return a value return undefined after an error. */
export class ElementParser {
  /** Request fields that expressions read. */
  readonly requestFields = new Set<string>()
  /** Names of the parameters that expressions may read; null in a sequence, which a template may run. */
  protected declared: readonly string[] | null = null
  protected readonly diagnostics: Diagnostics
  readonly #expressions: ExpressionParser

  constructor(syntax: ExpressionSyntax, diagnostics: Diagnostics) {
    this.diagnostics = diagnostics
    this.#expressions = new ExpressionParser(syntax, this.requestFields)
  }

  /** `field`: an attribute or child of the element; '' for the element itself. */
  error(element: XmlElement, field: string, expected: string, hint: string, given = ''): undefined {
    const key = field === '' ? element.qualifiedName : `${element.qualifiedName}/${field}`
    const shown = given.length > GIVEN_LENGTH_MAX ? `${given.slice(0, GIVEN_LENGTH_MAX)}...` : given
    return this.diagnostics.error(element.where, key, expected, hint, shown)
  }

  /** An error within the text of an element. `line`: that of the file. */
  errorInText(element: XmlElement, line: number, expected: string, hint: string): undefined {
    const where = element.where.replace(/\d+$/, String(line))
    return this.diagnostics.error(where, element.qualifiedName, expected, hint)
  }

  /** A warning: the mediator or endpoint is used all the same. */
  warn(element: XmlElement, field: string, expected: string, hint: string): void {
    const key = field === '' ? element.qualifiedName : `${element.qualifiedName}/${field}`
    this.diagnostics.warn(element.where, key, expected, hint)
  }

  /** A warning within the text of an element. `line`: that of the file. */
  warnInText(element: XmlElement, line: number, expected: string, hint: string): void {
    const where = element.where.replace(/\d+$/, String(line))
    this.diagnostics.warn(where, element.qualifiedName, expected, hint)
  }

  checkAttributes(element: XmlElement, known: readonly string[]): void {
    for (const { name } of element.attributes) {
      if (known.includes(name) || IGNORED.includes(name)) continue
      const near = nearest(name, known)
      const names = known.length === 0 ? 'it has none' : `known attributes are ${known.join(', ')}`
      this.error(element, name, 'is an unknown attribute', near === '' ? names : `${near}?`)
    }
  }

  /** Also refuses elements of other namespaces. */
  checkElements(element: XmlElement, known: readonly string[]): void {
    for (const child of element.children) {
      if (known.includes(child.name) && child.namespace === SEQUENCE_NAMESPACE) continue
      const renamed = Object.hasOwn(RENAMED, child.name) ? RENAMED[child.name]! : ''
      const names = known.length === 0 ? 'it has none' : `known elements are ${known.join(', ')}`
      const hint = known.some(name => renamed.includes(`<${name}>`)) ? renamed : names
      this.error(child, '', `is not an element of <${element.name}>`, hint)
    }
  }

  checkNoText(element: XmlElement): void {
    if (element.nodes.some(node => typeof node === 'string' && node.trim() !== '')) {
      this.error(element, '', 'contains text, which has no effect', 'remove the text')
    }
  }

  /** The child of that name, which may occur once. */
  only(element: XmlElement, name: string): XmlElement | undefined {
    const [first, second] = element.children.filter(child => child.name === name)
    if (second !== undefined) this.error(second, '', `is repeated in <${element.name}>`, 'remove one')
    return first
  }

  required(element: XmlElement, attribute: string): string | undefined {
    const given = element.attribute(attribute)
    return given === '' ? this.error(element, attribute, 'is missing', 'add it') : given
  }

  /** Returns the choice that an attribute names in any case; `otherwise` without the attribute. */
  choice<Choice extends string>(
    element: XmlElement,
    attribute: string,
    choices: readonly Choice[],
    otherwise: Choice,
  ): Choice | undefined {
    if (!element.has(attribute)) return otherwise
    const given = element.attribute(attribute)
    const found = choices.find(choice => choice.toLowerCase() === given.toLowerCase())
    return found ?? this.error(element, attribute, `expected one of ${choices.join(', ')}`, 'correct it', given)
  }

  flag(element: XmlElement, attribute: string): boolean | undefined {
    const given = this.choice(element, attribute, ['true', 'false'], 'false')
    return given === undefined ? undefined : given === 'true'
  }

  /** Expression in a required attribute. */
  expression(element: XmlElement, attribute: string): Expression | undefined {
    const text = this.required(element, attribute)
    return text === undefined ? undefined : this.expressionIn(element, text, attribute)
  }

  /** Expression that stands anywhere in the element. `isSecret`: no diagnostic shows a part of it. */
  expressionIn(element: XmlElement, text: string, attribute = '', isSecret = false): Expression | undefined {
    const { expression, why, hint } = this.#expressions.parse(text, prefix => element.namespaceOf(prefix))
    for (const name of expression === undefined ? [] : this.#expressions.variables) {
      // The environment of a process does not change.
      if (process.env[name] !== undefined) continue
      const remedy = "set it before the start, or correct the name: its value is ''"
      this.warn(element, attribute, `reads ${name}, a variable of the environment that is not set`, remedy)
    }
    for (const name of this.declared === null ? [] : this.#expressions.parameters) {
      if (this.declared!.includes(name)) continue
      const declare = `add <parameter name="${name}"/>`
      this.warn(element, attribute, `reads ${name}, which is no parameter of the template`, declare)
    }
    if (expression === undefined && isSecret) {
      const remedy = "correct it, or read the text from a variable of the environment: {get-property('env', 'NAME')}"
      return this.error(element, attribute, 'is not a valid expression', remedy)
    }
    return expression ?? this.error(element, attribute, why, hint, text)
  }

  /** JSONPath in a required attribute, without `json-eval()` around it. */
  jsonPath(element: XmlElement, attribute: string): Expression | undefined {
    const text = this.required(element, attribute)
    if (text === undefined) return undefined
    const { expression, why, hint } = this.#expressions.parseJsonPath(text)
    return expression ?? this.error(element, attribute, why, hint, text)
  }

  /** Requires exactly one of the attributes `value` and `expression`. */
  valueOrExpression(element: XmlElement): Expression | undefined {
    if (element.has('value') === element.has('expression')) {
      return this.error(element, 'value', 'expected either value or expression', 'give one of them')
    }
    if (element.has('expression')) return this.expression(element, 'expression')
    return { kind: 'literal', value: element.attribute('value') }
  }

  /** Text in a required attribute; all of it in `{…}` or `${…}` is an expression. */
  textOrExpression(element: XmlElement, attribute: string): Expression | undefined {
    const text = this.required(element, attribute)
    if (text === undefined) return undefined
    const inner = text.startsWith('${') ? text : /^\{([\s\S]*)\}$/.exec(text)?.[1]
    return inner === undefined ? { kind: 'literal', value: text } : this.expressionIn(element, inner, attribute)
  }

  /** Text with any number of `${…}` in it. */
  template(element: XmlElement, text: string): Expression | undefined {
    const parts: Expression[] = []
    let from = 0
    for (let at = text.indexOf('${'); at !== -1; at = text.indexOf('${', from)) {
      const end = endOfGroup(text, at + 2, '{}')
      if (end === -1) return this.error(element, '', 'has an expression without its closing brace', 'close it', text)
      const inner = this.expressionIn(element, text.slice(at, end))
      if (inner === undefined) return undefined
      parts.push({ kind: 'literal', value: text.slice(from, at) }, inner)
      from = end
    }
    if (from === 0) return { kind: 'literal', value: text }
    return { kind: 'call', name: 'concat', of: [...parts, { kind: 'literal', value: text.slice(from) }] }
  }

  /** The text with each `${…}` replaced by what `place` returns for its expression; undefined after an error. */
  placeholders(element: XmlElement, text: string, place: (expression: Expression) => string): string | undefined {
    let placed = ''
    let from = 0
    for (let at = text.indexOf('${'); at !== -1; at = text.indexOf('${', from)) {
      const end = endOfGroup(text, at + 2, '{}')
      if (end === -1) return this.error(element, '', 'has an expression without its closing brace', 'close it')
      const inner = this.expressionIn(element, text.slice(at, end))
      if (inner === undefined) return undefined
      placed += text.slice(from, at) + place(inner)
      from = end
    }
    return placed + text.slice(from)
  }

  /** Regular expression in a required attribute. */
  pattern(element: XmlElement, attribute: string): string | undefined {
    const text = this.required(element, attribute)
    if (text === undefined) return undefined
    const { pattern, why, hint } = parsePattern(text)
    return pattern ?? this.error(element, attribute, why, hint, text)
  }

  /**
   * The element as a tree of its own, with the namespace declarations that it uses. The default namespace of the
   * sequence file is left out: authors who omit xmlns="" mean elements without a namespace.
   */
  tree(root: XmlElement): XmlElementNode {
    return selfContained(plainTree(root), prefix => {
      const namespace = root.namespaceOf(prefix)
      return prefix === '' && namespace === SEQUENCE_NAMESPACE ? undefined : namespace
    })
  }
}

function plainTree(node: XmlElement): XmlElementNode {
  const attributes = [...node.declarations, ...node.attributes].map(({ name, value }) => [name, value] as const)
  const hasElements = node.children.length > 0
  const children = node.nodes.flatMap((child): readonly XmlChild[] => {
    // White space between elements is layout of the file.
    if (typeof child === 'string') return hasElements && child.trim() === '' ? [] : [child]
    if (!('target' in child)) return [plainTree(child)]
    return child.target === ARRAY_TARGET ? [{ arrayOf: child.data.trim() }] : []
  })
  return xmlElement(node.qualifiedName, children, attributes)
}
