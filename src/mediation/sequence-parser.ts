/** Parses sequence files, in the primary: elements to plans, with helpers and the common errors of all mediators. */
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import { parseXml, type XmlBounds, type XmlElement } from '../config/xml.ts'
import { parseNamedEndpoint, parseSequenceEndpoint } from './endpoint-parser.ts'
import type { EndpointForm, SequenceEndpoint } from './endpoint-plan.ts'
import type { Expression } from './expression.ts'
import { ExpressionParser } from './expression-parser.ts'
import type { ExpressionSyntax } from './expression-syntax.ts'
import { SEQUENCE_NAMESPACE } from './functions.ts'
import type { AnyMediator } from './mediator.ts'
import { MEDIATORS } from './mediators/list.ts'
import { parsePattern } from './pattern.ts'
import { copiesOf } from './flow-plan.ts'
import type { Branch, MediatorPlan, SequencePlan, TemplateCall, TemplateParameter, UsedFile } from './sequence-plan.ts'
import { templateKey, templateName } from './templates.ts'
import { remedyOf } from './unsupported-mediators.ts'
import { ARRAY_TARGET, element as xmlElement, selfContained, type XmlChild, type XmlElementNode } from './xml-tree.ts'

export const BOUNDS: XmlBounds = { bytes: 1024 * 1024, elements: 10_000, depth: 100 }
const GIVEN_LENGTH_MAX = 200
/** Attributes of exported sequences without effect here: traces and statistics are configured for the gateway. */
const WITHOUT_EFFECT = ['trace', 'statistics']
/** Comments of the author. */
const IGNORED = ['description']

/**
 * Parses the file of a sequence or template. `name`: that of its plan, which the file must give. `label`: how
 * diagnostics call the file. Undefined after any error.
 */
export async function parseSequence(
  name: string,
  label: string,
  text: string,
  diagnostics: Diagnostics,
): Promise<SequencePlan | undefined> {
  const before = diagnostics.errors.length
  const template = templateName(name)
  const root = await parseXml(text, label, template === undefined ? 'sequence' : 'template', diagnostics, BOUNDS)
  if (root === undefined) return undefined
  if (root.namespace !== SEQUENCE_NAMESPACE) {
    const hint = `add xmlns="${SEQUENCE_NAMESPACE}"`
    return diagnostics.error(root.where, 'xmlns', 'is not that of the sequence language', hint)
  }
  const { loadExpressionSyntax } = await import('./expression-syntax.ts')
  const parser = new SequenceParser(MEDIATORS, await loadExpressionSyntax(), diagnostics)
  const steps = template === undefined ? parser.root(root, name) : parser.stepsOfTemplate(root, template)
  if (diagnostics.errors.length > before) return undefined
  const { requestFields, calls, onError } = parser
  const endpoints = parser.endpoints.size === 0 ? {} : { endpoints: [...parser.endpoints.values()] }
  const files = parser.files.length === 0 ? {} : { files: parser.files }
  const fields = [...requestFields]
  const parsed = { name, label, steps, onError, requestFields: fields, calls: [...calls] }
  const parameters = template === undefined ? {} : { parameters: parser.parameters }
  const templateCalls = parser.templateCalls.length === 0 ? {} : { templateCalls: parser.templateCalls }
  return { ...parsed, ...endpoints, ...files, ...parameters, ...templateCalls, isDefault: false }
}

/** Parses a file of an endpoint. Undefined after any error. */
export async function parseEndpointFile(
  name: string,
  label: string,
  text: string,
  diagnostics: Diagnostics,
): Promise<EndpointForm | undefined> {
  const before = diagnostics.errors.length
  const root = await parseXml(text, label, 'endpoint', diagnostics, BOUNDS)
  if (root === undefined) return undefined
  if (root.namespace !== SEQUENCE_NAMESPACE) {
    const hint = `add xmlns="${SEQUENCE_NAMESPACE}"`
    return diagnostics.error(root.where, 'xmlns', 'is not that of the sequence language', hint)
  }
  const { loadExpressionSyntax } = await import('./expression-syntax.ts')
  const form = parseNamedEndpoint(root, name, new SequenceParser(MEDIATORS, await loadExpressionSyntax(), diagnostics))
  return diagnostics.errors.length > before ? undefined : form
}

export class SequenceParser {
  readonly requestFields = new Set<string>()
  /** Names of the sequences that mediators run. */
  readonly calls = new Set<string>()
  /** Endpoints that mediators name or contain, by name. */
  readonly endpoints = new Map<string, SequenceEndpoint>()
  /** Files of the home that mediators use. */
  readonly files: UsedFile[] = []
  readonly templateCalls: TemplateCall[] = []
  /** Parameters of the template; empty for a sequence. */
  readonly parameters: TemplateParameter[] = []
  /** Names of the parameters that expressions may read; null in a sequence, which a template may run. */
  #declared: readonly string[] | null = null
  /** Name of the sequence that runs when a mediator fails; '' for none. */
  onError = ''
  readonly #mediators: ReadonlyMap<string, AnyMediator>
  readonly #diagnostics: Diagnostics
  readonly #expressions: ExpressionParser

  constructor(mediators: readonly AnyMediator[], syntax: ExpressionSyntax, diagnostics: Diagnostics) {
    this.#mediators = new Map(mediators.map(mediator => [mediator.name, mediator]))
    this.#diagnostics = diagnostics
    this.#expressions = new ExpressionParser(syntax, this.requestFields)
  }

  root(root: XmlElement, name: string): readonly MediatorPlan[] {
    this.#head(root, name)
    return this.mediators(root.children)
  }

  /** Mediators of a template: its parameters, and one `<sequence>` that holds them. */
  stepsOfTemplate(root: XmlElement, name: string): readonly MediatorPlan[] {
    this.#head(root, name)
    this.checkElements(root, ['parameter', 'sequence', 'endpoint'])
    const endpoint = root.child('endpoint')
    if (endpoint !== undefined) {
      const hint = 'templates of endpoints are files of synapse-configs/default/templates in the home'
      this.error(endpoint, '', 'makes this a template of endpoints, which has another place', hint)
      return []
    }
    for (const child of root.children) {
      if (child.name === 'parameter') this.parameters.push(...this.#parameter(child))
    }
    this.#declared = this.parameters.map(parameter => parameter.name)
    const body = this.only(root, 'sequence')
    if (body === undefined) {
      this.error(root, '', 'has no <sequence>', 'add it')
      return []
    }
    this.checkAttributes(body, WITHOUT_EFFECT)
    this.checkNoText(body)
    return this.mediators(body.children)
  }

  #parameter(element: XmlElement): readonly TemplateParameter[] {
    this.checkAttributes(element, ['name', 'isMandatory', 'defaultValue'])
    this.checkElements(element, [])
    const name = this.required(element, 'name')
    const isMandatory = this.flag(element, 'isMandatory')
    if (name === undefined || isMandatory === undefined) return []
    if (this.parameters.some(other => other.name === name))
      this.error(element, 'name', 'is repeated', 'remove one', name)
    return [{ name, isMandatory, value: element.attribute('defaultValue') }]
  }

  /** Attributes and text of the root. */
  #head(root: XmlElement, name: string): void {
    this.checkAttributes(root, ['name', 'onError', ...WITHOUT_EFFECT])
    for (const attribute of WITHOUT_EFFECT.filter(attribute => isSwitchedOn(root, attribute))) {
      this.#diagnostics.warn(root.where, `${root.qualifiedName}/${attribute}`, 'has no effect', 'remove it')
    }
    const given = this.required(root, 'name')
    if (given !== undefined && given !== name) {
      this.error(root, 'name', `is not the name of its file, ${name}`, 'give it the name of the file', given)
    }
    this.onError = root.attribute('onError')
    if (this.onError !== '') this.calls.add(this.onError)
    this.checkNoText(root)
  }

  /** The endpoint of a mediator; undefined after an error. `mayBeFound`: an expression may find its key. */
  endpoint(element: XmlElement, mayBeFound = false): SequenceEndpoint | undefined {
    const endpoint = parseSequenceEndpoint(element, this, mayBeFound)
    return endpoint === undefined ? undefined : this.use(endpoint)
  }

  /** The sequence uses the endpoint. */
  use(endpoint: SequenceEndpoint): SequenceEndpoint {
    // A name that one mediator takes for a single endpoint stays one.
    if (this.endpoints.get(endpoint.name)?.takesOne !== true) this.endpoints.set(endpoint.name, endpoint)
    return endpoint
  }

  /** The sequence uses a file of the home. `kind`: see UsedFile. */
  uses(element: XmlElement, kind: UsedFile['kind'], key: string): void {
    this.files.push({ kind, key, line: element.line })
  }

  /** The sequence runs a template. `given`: names of the parameters. */
  callsTemplate(element: XmlElement, template: string, given: readonly string[]): void {
    this.calls.add(templateKey(template))
    this.templateCalls.push({ template, given, line: element.line })
  }

  /** Leaves out mediators with errors. */
  mediators(elements: readonly XmlElement[]): readonly MediatorPlan[] {
    return withAggregates(this.#plans(elements))
  }

  /** The sequence that the attribute names, else the mediators within the element. */
  branch(element: XmlElement, attribute = 'sequence'): Branch {
    const key = element.attribute(attribute)
    if (key === '') return { key, steps: this.mediators(element.children) }
    this.calls.add(key)
    this.checkElements(element, [])
    return { key, steps: [] }
  }

  #plans(elements: readonly XmlElement[]): readonly MediatorPlan[] {
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
    if (mediator.text !== 'allowed') this.checkNoText(element)
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
    const remedy = remedyOf(name)
    if (remedy !== undefined) return this.error(element, '', 'is not supported', remedy)
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

  /** An error within the text of an element. `line`: that of the file. */
  errorInText(element: XmlElement, line: number, expected: string, hint: string): undefined {
    const where = element.where.replace(/\d+$/, String(line))
    return this.#diagnostics.error(where, element.qualifiedName, expected, hint)
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
    return text === undefined ? undefined : this.expressionIn(element, text, attribute)
  }

  /** Expression that stands anywhere in the element. */
  expressionIn(element: XmlElement, text: string, attribute = ''): Expression | undefined {
    const { expression, why, hint } = this.#expressions.parse(text, prefix => element.namespaceOf(prefix))
    for (const name of expression === undefined ? [] : this.#expressions.variables) {
      // The environment of a process does not change.
      if (process.env[name] !== undefined) continue
      const remedy = "set it before the start, or correct the name: its value is ''"
      this.warn(element, attribute, `reads ${name}, a variable of the environment that is not set`, remedy)
    }
    for (const name of this.#declared === null ? [] : this.#expressions.parameters) {
      if (this.#declared!.includes(name)) continue
      const declare = `add <parameter name="${name}"/>`
      this.warn(element, attribute, `reads ${name}, which is no parameter of the template`, declare)
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
      const end = endOfBraces(text, at + 2)
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
      const end = endOfBraces(text, at + 2)
      if (end === -1) return this.error(element, '', 'has an expression without its closing brace', 'close it')
      const inner = this.expressionIn(element, text.slice(at, end))
      if (inner === undefined) return undefined
      placed += text.slice(from, at) + place(inner)
      from = end
    }
    return placed + text.slice(from)
  }

  /** A warning about a step that is taken all the same. */
  warn(element: XmlElement, field: string, expected: string, hint: string): void {
    const key = field === '' ? element.qualifiedName : `${element.qualifiedName}/${field}`
    this.#diagnostics.warn(element.where, key, expected, hint)
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

/** Gives mediators that make copies what follows them up to `<aggregate>`, because it runs on each copy. */
function withAggregates(plans: readonly MediatorPlan[]): readonly MediatorPlan[] {
  const to = (from: number) => plans.findIndex(({ mediator }, at) => at > from && mediator === 'aggregate')
  const from = plans.findIndex((plan, at) => {
    const copies = copiesOf(plan)
    // Of several endpoints of files the last one may be the list.
    return copies === 'always' || (copies === 'perhaps' && !plans.slice(at + 1, to(at)).some(isCopier))
  })
  const end = to(from)
  if (from < 0 || end < 0) return plans
  const maker = plans[from]!
  const settings = { ...(maker.settings as object), gathers: plans.slice(from + 1, end + 1) }
  return [...plans.slice(0, from), { ...maker, settings }, ...withAggregates(plans.slice(end + 1))]
}

function isCopier(plan: MediatorPlan): boolean {
  return copiesOf(plan) !== 'never'
}

/** Index behind the brace that closes one in front of `from`; -1 without it. */
function endOfBraces(text: string, from: number): number {
  let depth = 1
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (character === '"' || character === "'") {
      at = text.indexOf(character, at + 1)
      if (at === -1) return -1
    } else if (character === '{') depth++
    else if (character === '}' && --depth === 0) return at + 1
  }
  return -1
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

/** `disable` asks for what is the case anyway. */
function isSwitchedOn(root: XmlElement, attribute: string): boolean {
  return root.has(attribute) && root.attribute(attribute) !== 'disable'
}
