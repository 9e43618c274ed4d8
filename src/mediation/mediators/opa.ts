/**
 * `<opa>`: asks a policy server (Open Policy Agent) about the request, and refuses the request unless the answer is
 * true. The server gets method, path, query, request fields, address of the client, resource and API.
 */
import type { XmlElement } from '../../config/xml.ts'
import { applyFormat, callBackend } from '../backend-calls.ts'
import { endpointOfUrl } from '../endpoint-parser.ts'
import type { SequenceEndpoint } from '../endpoint-plan.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import { type Json, memberOf, textOf, type Value } from '../value.ts'

interface OpaSettings {
  readonly endpoint: SequenceEndpoint
  /** '' for none. */
  readonly accessToken: string
  /** Path of policy and rule behind the address of the server. */
  readonly path: string
  /** The path names a rule, whose result decides; else the rule `allow` in the result of the policy does. */
  readonly namesRule: boolean
  /** Names of properties that the input holds. */
  readonly properties: readonly string[]
  /** Further members of the input. */
  readonly parameters: Readonly<Record<string, string>>
}

const FORBIDDEN = 102555
const UNDECIDED = 102556
const SETTINGS = ['serverUrl', 'accessKey', 'accessToken', 'policy', 'rule']
const PATH = /^[\w./-]{1,500}$/
const DEFAULT_RULE = 'allow'
/** Parameter of the language with names of properties, separated by commas. */
const PROPERTIES = 'additionalMCProperties'

export const opa = mediator<OpaSettings>({
  name: 'opa',
  attributes: SETTINGS,
  elements: [...SETTINGS, 'parameter', 'additionalParameters', 'requestGenerator'],

  parse(element, parser) {
    const given = (name: string) => element.attribute(name) || (parser.only(element, name)?.text.trim() ?? '')
    const url = given('serverUrl')
    const policy = given('policy')
    const rule = given('rule')
    if (url === '')
      return parser.error(element, 'serverUrl', 'is missing', 'for example http://opa.example:8181/v1/data')
    if (policy === '') return parser.error(element, 'policy', 'is missing', 'for example apis/pets')
    for (const [name, value] of [
      ['policy', policy],
      ['rule', rule],
    ] as const) {
      if (value === '' || PATH.test(value)) continue
      return parser.error(element, name, `is not the path of a ${name}`, 'for example apis/pets', value)
    }
    const endpoint = endpointOfUrl(element, 'serverUrl', url, 'POST', parser)
    const generator = parser.only(element, 'requestGenerator')
    if (generator !== undefined && generator.text !== '') {
      return parser.error(generator, '', 'is a class', 'remove it: the input is the documented one', generator.text)
    }
    const list = [element, parser.only(element, 'additionalParameters')]
    const all = list.flatMap(each => each?.children.filter(({ name }) => name === 'parameter') ?? [])
    const parameters = Object.fromEntries(all.map(child => parseParameter(child, parser)))
    const { [PROPERTIES]: properties = '', sendAccessToken = 'false', ...others } = parameters
    if (sendAccessToken === 'true') {
      return parser.error(element, 'sendAccessToken', 'is not supported', 'remove it: the policy server gets no token')
    }
    if (endpoint === undefined) return undefined
    parser.use(endpoint)
    const path = [policy, rule]
      .filter(part => part !== '')
      .map(part => `/${part.replaceAll('.', '/').replace(/^\/+/, '')}`)
    return {
      endpoint,
      accessToken: given('accessKey') || given('accessToken'),
      path: path.join(''),
      namesRule: rule !== '',
      properties: properties.split(',').flatMap(name => (name.trim() === '' ? [] : [name.trim()])),
      parameters: others,
    }
  },

  needs: () => 'worker',

  compile({ endpoint, accessToken, path, namesRule, properties, parameters }) {
    return async message => {
      const request = message.copy()
      const own = properties.map(name => [name, jsonOfValue(message.get('default', name))] as const)
      const input = { ...inputOf(message, parameters), ...Object.fromEntries(own.filter(([, value]) => value !== '')) }
      for (const [name] of [...request.keptFields()]) request.remove('transport', name)
      if (accessToken !== '') request.set('transport', 'Authorization', `Bearer ${accessToken}`)
      request.json = { input }
      request.set('axis2', 'messageType', 'application/json')
      request.set('axis2', 'REST_URL_POSTFIX', path)
      applyFormat(request, endpoint.form)
      const response = await callBackend(request, endpoint, false)
      if (isAllowed(response, namesRule)) return true
      throw new MediationFault({
        code: FORBIDDEN,
        message: 'Forbidden',
        cause: 'the policy server refuses the request',
      })
    }
  },
})

/** A parameter with its text, or the attribute `value`. */
function parseParameter(element: XmlElement, parser: SequenceParser): readonly [name: string, value: string] {
  parser.checkAttributes(element, ['name', 'value'])
  return [parser.required(element, 'name') ?? '', element.attribute('value') || element.text.trim()]
}

function inputOf(message: Message, parameters: Readonly<Record<string, string>>): { readonly [name: string]: Json } {
  const { method, target } = message.head
  const [path = '', query = ''] = target.split('?')
  const text = (name: string) => textOf(message.get('default', name))
  const headers: Record<string, string> = {}
  for (const [name, value] of [...message.keptFields(), ...message.fields()])
    headers[name.toLowerCase()] = textOf(value)
  return {
    ...parameters,
    ...{ method, path, query, transportHeaders: headers },
    requestOrigin: textOf(message.get('axis2', 'REMOTE_ADDR')),
    electedResource: text('API_ELECTED_RESOURCE'),
    apiContext: { apiName: text('API_NAME'), apiVersion: text('SYNAPSE_REST_API_VERSION') },
  }
}

function jsonOfValue(value: Value | undefined): Json {
  if (typeof value === 'object') return value.kind === 'json' ? value.value : textOf(value)
  return value ?? ''
}

/** An answer that is none is a fault of its own, so that a broken server admits nobody. */
function isAllowed(response: Message, namesRule: boolean): boolean {
  const { status } = response.head
  const json = status === 200 ? response.json : undefined
  const result = memberOf(json, 'result')
  const decision = namesRule || typeof result === 'boolean' ? result : memberOf(result, DEFAULT_RULE)
  if (typeof decision === 'boolean') return decision
  const cause = `the policy server answered ${status} without a decision`
  throw new MediationFault({ code: UNDECIDED, message: 'No policy decision', cause })
}
