/** `<payloadFactory template-type="freemarker">`: what a template reads of a message, and what its output becomes. */
import { servicesOf } from '../backend-calls.ts'
import { compileTemplate, type RunTemplate } from '../freemarker/directives.ts'
import type { Environment, RunLimits } from '../freemarker/environment.ts'
import { NodeValue } from '../freemarker/nodes.ts'
import type { TemplatePlan } from '../freemarker/plan.ts'
import { TemplateFailure } from '../freemarker/template-error.ts'
import { Hash, MapHash, type TemplateValue } from '../freemarker/values.ts'
import { jsonOf } from '../formats/json-text.ts'
import { jsonOfXml, nodesOfJson } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { Message, Payload, Scope } from '../message.ts'
import { BEYOND_LIMIT, structureIn, valueOfPayload } from '../payload-value.ts'
import { MALFORMED, tooLong } from '../property-type.ts'
import { firstOfBody, soapVersion } from '../soap.ts'
import type { TaskServices } from '../task-calls.ts'
import { markupOf, textOf, type Value } from '../value.ts'
import { nodeWriter, elementsOf, textWithin, writeXml, type XmlNode } from '../xml-tree.ts'

type Media = 'json' | 'xml' | 'text'

const NOT_MADE = 'The message could not be mediated'
const MEDIA_TYPES = { json: 'application/json', xml: 'application/xml' } as const

/** Makes the payload of a message. Throws MediationFault and LimitReached. */
export type MakePayload = (message: Message, args: readonly Value[]) => Payload

/** `literals`: whether each argument is a literal. */
export function compileFreemarker(plan: TemplatePlan, media: Media, literals: readonly boolean[]): MakePayload {
  const run = compileTemplate(plan)
  return (message, args) => {
    const services = servicesOf(message)
    const text = outputOf(run, message, services, media, () =>
      args.map((value, at) => argumentText(value, media, literals[at]!, services)),
    )
    return media === 'text' ? { kind: 'text', text } : parsed(text, media, services)
  }
}

function outputOf(
  run: RunTemplate,
  message: Message,
  { limits, isOver, parse }: TaskServices,
  media: Media,
  args: () => readonly string[],
): string {
  const parseJson: RunLimits['parseJson'] = text => {
    try {
      const payload = parse(text, MEDIA_TYPES.json)
      return payload?.kind === 'json' ? payload : undefined
    } catch (error) {
      return codeOf(error) === MALFORMED ? undefined : failed(error)
    }
  }
  try {
    const root = (env: Environment) => dataOf(message, env, media, args)
    // As on the reference platform, white space around the payload is no part of it.
    return run(root, { characters: limits.decodedSize, items: limits.items, isOver, parseJson }).trim()
  } catch (error) {
    if (!(error instanceof TemplateFailure)) throw error
    throw new MediationFault({ message: NOT_MADE, cause: error.message })
  }
}

function codeOf(error: unknown): number {
  return error instanceof MediationFault ? error.raised.code : 0
}

/** Throws the error; one about a limit of bodies is about what the template has made. */
function failed(error: unknown): never {
  if (error instanceof MediationFault && error.raised.code === BEYOND_LIMIT) throw tooLong(error.raised.cause)
  throw error
}

function parsed(text: string, media: keyof typeof MEDIA_TYPES, { parse }: TaskServices): Payload {
  const name = media === 'json' ? 'JSON' : 'XML'
  try {
    const payload = parse(text, MEDIA_TYPES[media])
    if (payload !== null) return payload
  } catch (error) {
    if (!(error instanceof MediationFault) || error.raised.code !== MALFORMED) return failed(error)
    throw new MediationFault({ message: NOT_MADE, cause: `the template makes no ${name}: ${error.raised.cause}` })
  }
  throw new MediationFault({ message: NOT_MADE, cause: `the template makes no ${name}: it is empty` })
}

/** Data of a message, read when the template asks for it. */
class Lazy extends Hash {
  readonly #members: Readonly<Record<string, () => TemplateValue>>
  readonly #known = new Map<string, TemplateValue>()

  constructor(members: Readonly<Record<string, () => TemplateValue>>) {
    super()
    this.#members = members
  }

  override get(name: string): TemplateValue {
    if (this.#known.has(name) || !Object.hasOwn(this.#members, name)) return this.#known.get(name)
    const value = this.#members[name]!()
    this.#known.set(name, value)
    return value
  }

  override names(): readonly string[] {
    return Object.keys(this.#members)
  }
}

/** Properties of a scope. */
class ScopeHash extends Hash {
  readonly #message: Message
  readonly #scope: Scope
  readonly #convert: (value: Value) => TemplateValue

  constructor(message: Message, scope: Scope, convert: (value: Value) => TemplateValue) {
    super()
    this.#message = message
    this.#scope = scope
    this.#convert = convert
  }

  override get(name: string): TemplateValue {
    const value = this.#message.get(this.#scope, name)
    return value === undefined ? undefined : this.#convert(value)
  }

  override names(): readonly string[] {
    const message = this.#message
    if (this.#scope === 'transport') {
      const names = [...message.keptFields(), ...message.fields()].map(([name]) => name)
      return [...new Map(names.map(name => [name.toLowerCase(), name])).values()]
    }
    const { default: own, axis2, variables } = message.state()
    return (this.#scope === 'axis2' ? axis2 : this.#scope === 'variable' ? variables : own).map(([name]) => name)
  }
}

function dataOf(message: Message, env: Environment, media: Media, args: () => readonly string[]): Hash {
  const scope = (name: Scope) => () => new ScopeHash(message, name, propertyText)
  const variables = () => new ScopeHash(message, 'variable', value => variableOf(value, env))
  return new Lazy({
    payload: () => payloadOf(message.payload, env, media),
    args: () => new MapHash(new Map(args().map((text, at) => [`arg${at + 1}`, text]))),
    ctx: scope('default'),
    axis2: scope('axis2'),
    trp: scope('transport'),
    vars: variables,
    var: variables,
    headers: scope('transport'),
    props: () => new Lazy({ synapse: scope('default'), axis2: scope('axis2') }),
  })
}

/** As on the reference platform, properties are texts. */
function propertyText(value: Value): string {
  return typeof value === 'object' && value.kind === 'xml' ? value.nodes.map(nodeWriter()).join('') : textOf(value)
}

/** Variables keep their types. */
function variableOf(value: Value, env: Environment): TemplateValue {
  if (typeof value !== 'object') return value
  if (value.kind === 'json') return value.value
  const nodes = value.nodes.map(node => nodeOf(node, env))
  return nodes.length === 1 ? nodes[0] : nodes
}

function nodeOf(node: XmlNode, env: Environment): TemplateValue {
  return typeof node === 'string' ? node : NodeValue.document(node, env)
}

function payloadOf(payload: Payload | null, env: Environment, media: Media): TemplateValue {
  // As on the reference platform, JSON that is null is this text.
  if (payload?.kind === 'json') return jsonOf(payload) ?? 'null'
  if (payload?.kind === 'xml') {
    const { root } = payload
    const content = soapVersion(root, 'Envelope') === undefined ? root : firstOfBody(root)
    return content === undefined ? '' : NodeValue.document(content, env)
  }
  const text = textOf(valueOfPayload(payload))
  return media === 'xml' ? writeXml(text) : text
}

/** An argument as a part of the output: escaped for a text of JSON or XML; structures as they are written there. */
function argumentText(value: Value, media: Media, isLiteral: boolean, services: TaskServices): string {
  if (media === 'text') return markupOf(value)
  if (media === 'json') return isLiteral ? inJson(markupOf(value)) : jsonText(value, services)
  if (typeof value !== 'object') return writeXml(textOf(value))
  if (value.kind === 'json') return nodesOfJson(value.value).map(writeXml).join('')
  return value.nodes.map(node => writeXml(isSimple(node) ? textWithin(node) : node)).join('')
}

function jsonText(value: Value, services: TaskServices): string {
  if (typeof value === 'object' && value.kind === 'xml') {
    const [first = ''] = value.nodes
    return typeof first === 'string' || isSimple(first) ? inJson(textWithin(first)) : JSON.stringify(jsonOfXml(first))
  }
  const text = textOf(value)
  if (typeof value === 'object') return text
  const structure = structureIn(text, services)
  return structure === undefined ? inJson(text) : JSON.stringify(structure)
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** An element with text alone is its text. */
function isSimple(node: XmlNode): boolean {
  return typeof node === 'string' || elementsOf(node).length === 0
}
