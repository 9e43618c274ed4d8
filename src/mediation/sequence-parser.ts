/** Parses sequence files, in the primary: elements to plans, with helpers and the common errors of all mediators. */
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { parseXml, type XmlBounds, type XmlElement } from '../config/xml.ts'
import type { Expression } from './expression.ts'
import { ExpressionParser } from './expression-parser.ts'
import type { ExpressionSyntax } from './expression-syntax.ts'
import { SEQUENCE_NAMESPACE } from './functions.ts'
import type { AnyMediator } from './mediator.ts'
import { MEDIATORS } from './mediators/list.ts'
import { parsePattern } from './pattern.ts'
import type { MediatorPlan, SequencePlan } from './sequence-plan.ts'
import { element as xmlElement, selfContained, type XmlElementNode } from './xml-tree.ts'

const BOUNDS: XmlBounds = { bytes: 1024 * 1024, elements: 10_000, depth: 100 }
/** Mediators of the reference platform that are not supported yet. */
const UNSUPPORTED = [
  ...['aggregate', 'builder', 'cache', 'call', 'class', 'clone', 'endpoint', 'enrich', 'foreach', 'iterate'],
  ...['loopback', 'opa', 'propertyGroup', 'rewrite', 'scatter-gather', 'script', 'throwError', 'variable'],
]
const GIVEN_LENGTH_MAX = 200
/** Attributes of exported sequences without effect here: the gateway logs failures and words the response itself. */
const WITHOUT_EFFECT = ['onError', 'trace', 'statistics']
/** Comments of the author. */
const IGNORED = ['description']

/**
 * Parses a sequence file. `name`: the name that the file must give. `label`: how diagnostics call the file. Undefined
 * after any error.
 */
export async function parseSequence(
  name: string,
  label: string,
  text: string,
  diagnostics: Diagnostics,
): Promise<SequencePlan | undefined> {
  const before = diagnostics.errors.length
  const root = await parseXml(text, label, 'sequence', diagnostics, BOUNDS)
  if (root === undefined) return undefined
  if (root.namespace !== SEQUENCE_NAMESPACE) {
    const hint = `add xmlns="${SEQUENCE_NAMESPACE}"`
    return diagnostics.error(root.where, 'xmlns', 'is not that of the sequence language', hint)
  }
  const { loadExpressionSyntax } = await import('./expression-syntax.ts')
  const parser = new SequenceParser(MEDIATORS, await loadExpressionSyntax(), diagnostics)
  const steps = parser.root(root, name)
  if (diagnostics.errors.length > before) return undefined
  return { name, label, steps, requestFields: [...parser.requestFields], calls: [...parser.calls], isDefault: false }
}

export class SequenceParser {
  readonly requestFields = new Set<string>()
  /** Names of the sequences that mediators run. */
  readonly calls = new Set<string>()
  readonly #mediators: ReadonlyMap<string, AnyMediator>
  readonly #diagnostics: Diagnostics
  readonly #expressions: ExpressionParser

  constructor(mediators: readonly AnyMediator[], syntax: ExpressionSyntax, diagnostics: Diagnostics) {
    this.#mediators = new Map(mediators.map(mediator => [mediator.name, mediator]))
    this.#diagnostics = diagnostics
    this.#expressions = new ExpressionParser(syntax, this.requestFields)
  }

  root(root: XmlElement, name: string): readonly MediatorPlan[] {
    this.checkAttributes(root, ['name', ...WITHOUT_EFFECT])
    for (const attribute of WITHOUT_EFFECT.filter(attribute => isSwitchedOn(root, attribute))) {
      this.#diagnostics.warn(root.where, `${root.qualifiedName}/${attribute}`, 'has no effect', 'remove it')
    }
    const given = this.required(root, 'name')
    if (given !== undefined && given !== name) {
      this.error(root, 'name', `is not the name of its file, ${name}`, 'give it the name of the file', given)
    }
    this.checkNoText(root)
    return this.mediators(root.children)
  }

  /** Leaves out mediators with errors. */
  mediators(elements: readonly XmlElement[]): readonly MediatorPlan[] {
    return elements.flatMap((element, at) => {
      const plan = this.#mediator(element)
      const next = elements[at + 1]
      if ((plan?.mediator === 'respond' || plan?.mediator === 'drop') && next !== undefined) {
        this.#diagnostics.warn(next.where, next.name, `is unreachable after <${plan.mediator}>`, 'remove it')
      }
      return plan === undefined ? [] : [plan]
    })
  }

  #mediator(element: XmlElement): MediatorPlan | undefined {
    const { name, line } = element
    const mediator = element.namespace === SEQUENCE_NAMESPACE ? this.#mediators.get(name) : undefined
    if (mediator === undefined) return this.#unknownMediator(element)
    this.checkAttributes(element, mediator.attributes)
    this.checkNoText(element)
    if (mediator.elements !== null) this.checkElements(element, mediator.elements)
    const settings = mediator.parse(element, this)
    return settings === undefined ? undefined : { mediator: name, line, settings }
  }

  #unknownMediator(element: XmlElement): undefined {
    const { name } = element
    if (element.namespace !== SEQUENCE_NAMESPACE) {
      const hint = `mediators are in the namespace ${SEQUENCE_NAMESPACE}`
      return this.error(element, '', 'is not a mediator', hint)
    }
    if (UNSUPPORTED.some(unsupported => unsupported.toLowerCase() === name.toLowerCase())) {
      return this.error(element, '', 'is not supported yet', 'remove it')
    }
    const known = [...this.#mediators.keys()]
    const near = nearest(name, known)
    const hint = near === '' ? `known mediators are ${known.join(', ')}` : `<${near}>?`
    return this.error(element, '', 'is not a mediator', hint)
  }

  /** `field`: an attribute or child of the element; '' for the element itself. */
  error(element: XmlElement, field: string, expected: string, hint: string, given = ''): undefined {
    const key = field === '' ? element.qualifiedName : `${element.qualifiedName}/${field}`
    const shown = given.length > GIVEN_LENGTH_MAX ? `${given.slice(0, GIVEN_LENGTH_MAX)}...` : given
    return this.#diagnostics.error(element.where, key, expected, hint, shown)
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
      const names = known.length === 0 ? 'it has none' : `known elements are ${known.join(', ')}`
      this.error(child, '', `is not an element of <${element.name}>`, names)
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

  /** One of the choices, in any case; `otherwise` without the attribute. */
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
    if (text === undefined) return undefined
    const { expression, why, hint } = this.#expressions.parse(text, prefix => element.namespaceOf(prefix))
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
  const children = node.nodes
    // White space between elements is layout of the file.
    .filter(child => typeof child !== 'string' || !hasElements || child.trim() !== '')
    .map(child => (typeof child === 'string' ? child : plainTree(child)))
  return xmlElement(node.qualifiedName, children, attributes)
}

/** `disable` asks for what is the case anyway. */
function isSwitchedOn(root: XmlElement, attribute: string): boolean {
  return root.has(attribute) && root.attribute(attribute) !== 'disable'
}
