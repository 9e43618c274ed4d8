/** Parses files of sequences, templates and endpoints, in the primary: elements to plans. */
import type { Diagnostics } from '../config/diagnostics.ts'
import { nearest } from '../config/nearest.ts'
import type { XmlElement } from '../config/xml.ts'
import { ElementParser, parseRoot } from './element-parser.ts'
import { parseNamedEndpoint, parseSequenceEndpoint } from './endpoint-parser.ts'
import type { EndpointForm, SequenceEndpoint } from './endpoint-plan.ts'
import type { ExpressionSyntax } from './expression-syntax.ts'
import { SEQUENCE_NAMESPACE } from './functions.ts'
import type { AnyMediator } from './mediator.ts'
import { MEDIATORS } from './mediators/list.ts'
import { copiesOf } from './flow-plan.ts'
import type { Branch, MediatorPlan, SequencePlan, TemplateCall, TemplateParameter, UsedFile } from './sequence-plan.ts'
import { templateKey, templateName } from './sequence-templates.ts'
import { remedyOf } from './unsupported-mediators.ts'

/** Attributes of exported sequences without effect here: traces and statistics are configured for the gateway. */
const WITHOUT_EFFECT = ['trace', 'statistics']

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
  const root = await parseRoot(text, label, template === undefined ? 'sequence' : 'template', diagnostics)
  if (root === undefined) return undefined
  const { loadExpressionSyntax } = await import('./expression-syntax.ts')
  const parser = new SequenceParser(MEDIATORS, await loadExpressionSyntax(), diagnostics)
  warnOfImportVariables(root, parser)
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
  const root = await parseRoot(text, label, 'endpoint', diagnostics)
  if (root === undefined) return undefined
  const { loadExpressionSyntax } = await import('./expression-syntax.ts')
  const form = parseNamedEndpoint(root, name, new ElementParser(await loadExpressionSyntax(), diagnostics))
  return diagnostics.errors.length > before ? undefined : form
}

export class SequenceParser extends ElementParser {
  /** Names of the sequences that mediators run. */
  readonly calls = new Set<string>()
  /** Endpoints that mediators name or contain, by name. */
  readonly endpoints = new Map<string, SequenceEndpoint>()
  /** Files of the home that mediators use. */
  readonly files: UsedFile[] = []
  readonly templateCalls: TemplateCall[] = []
  /** Parameters of the template; empty for a sequence. */
  readonly parameters: TemplateParameter[] = []
  /** Name of the sequence that runs when a mediator fails; '' for none. */
  onError = ''
  readonly #mediators: ReadonlyMap<string, AnyMediator>

  constructor(mediators: readonly AnyMediator[], syntax: ExpressionSyntax, diagnostics: Diagnostics) {
    super(syntax, diagnostics)
    this.#mediators = new Map(mediators.map(mediator => [mediator.name, mediator]))
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
    this.declared = this.parameters.map(parameter => parameter.name)
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
      this.diagnostics.warn(root.where, `${root.qualifiedName}/${attribute}`, 'has no effect', 'remove it')
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
        this.diagnostics.warn(next.where, next.name, `is unreachable after <${plan.mediator}>`, 'remove it')
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
}

/** Gives mediators that make copies what follows them up to `<aggregate>`, because it runs on each copy. */
function withAggregates(plans: readonly MediatorPlan[]): readonly MediatorPlan[] {
  const to = (from: number) => plans.findIndex(({ mediator }, at) => at > from && mediator === 'aggregate')
  const from = plans.findIndex((plan, at) => {
    const copies = copiesOf(plan)
    // Files decide which of several endpoints is a list: the last one that may be gets the mediators.
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

/** `disable` asks for what is the case anyway. */
function isSwitchedOn(root: XmlElement, attribute: string): boolean {
  return root.has(attribute) && root.attribute(attribute) !== 'disable'
}

/** As projects have them for a tool that replaces them with variables of its environment, which nothing does here. */
const IMPORT_VARIABLE = /\$\{([A-Z][A-Z0-9_]*)\}/

function warnOfImportVariables(element: XmlElement, parser: SequenceParser): void {
  const [shown, name] = IMPORT_VARIABLE.exec(element.attribute('value')) ?? []
  if (shown !== undefined) {
    const hint = `write expression="get-property('env', '${name}')"`
    parser.warn(element, 'value', `holds ${shown}, which stays as it is`, hint)
  }
  for (const child of element.children) warnOfImportVariables(child, parser)
}
