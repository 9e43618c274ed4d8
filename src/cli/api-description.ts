/** One API in words: who it is, where it stands, where it is answered, and what its requests pass. */
import type { ApiAnswer, EndpointsShown } from '../primary/api-desk.ts'
import { escapeControls } from '../observe/escape.ts'
import { table } from './table.ts'
import { paint, type Terminal } from './terminal.ts'

const WIDTH = 12

export function describeApi(api: ApiAnswer, terminal: Terminal): string {
  const { name, version, paths, hosts, transports, isAi } = api
  const rows: readonly (readonly [word: string, text: string])[] = [
    ['paths', paths.join(', ')],
    ['hosts', hosts.length === 0 ? 'every one' : hosts.join(', ')],
    ['transports', transports.join(', ')],
    ['kind', isAi ? 'API of a language model' : ''],
    ...lifecycleOf(api),
    ['CORS', corsOf(api)],
    ...termsOf(api),
  ]
  const lines = rows
    .filter(([, text]) => text !== '')
    .map(([word, text]) => `${paint(terminal, 'dim', word.padEnd(WIDTH))}${escapeControls(text)}\n`)
  return [
    `${paint(terminal, 'bold', escapeControls(`${name}:${version}`))}\n`,
    ...lines,
    section(terminal, 'production endpoints', endpointsOf(terminal, api.production)),
    section(terminal, 'sandbox endpoints', endpointsOf(terminal, api.sandbox)),
    section(terminal, 'handlers', handlersOf(terminal, api)),
    section(terminal, 'resources', resourcesOf(terminal, api)),
  ].join('')
}

function section(terminal: Terminal, title: string, body: string): string {
  return `\n${paint(terminal, 'bold', title)}\n${body}`
}

function lifecycleOf({ state, declared, since, sunset, actions }: ApiAnswer) {
  const before = since === '' ? '' : ` since ${since}`
  const byHand = declared === state ? '' : `; its project declares ${declared}`
  return [
    ['lifecycle', `${state}${before}${byHand}`],
    ['sunset', sunset],
    ['next', actions.length === 0 ? 'nothing' : actions.join(', ')],
  ] as const
}

function corsOf({ cors }: ApiAnswer): string {
  if (cors === null || !cors.enabled) return 'off'
  const { origins, methods, headers, exposedHeaders, credentials, maxAgeS } = cors
  const parts = [
    `origins ${some(origins)}`,
    `methods ${some(methods)}`,
    `headers ${some(headers)}`,
    exposedHeaders.length === 0 ? '' : `exposes ${exposedHeaders.join(' ')}`,
    credentials ? 'with credentials' : '',
    maxAgeS < 0 ? '' : `for ${maxAgeS} s`,
  ]
  return parts.filter(part => part !== '').join('; ')
}

function termsOf({ access: { provider, plans, tier, authHeader, securitySchemes } }: ApiAnswer) {
  const schemes = securitySchemes.length === 0 ? 'oauth2' : securitySchemes.join(', ')
  const field = authHeader === '' ? '' : ` in ${authHeader}`
  return [
    ['provider', provider],
    ['plans', plans.join(', ')],
    ['tier', tier],
    ['security', schemes + field],
  ] as const
}

function some(words: readonly string[]): string {
  return words.length === 0 ? 'none' : words.join(' ')
}

function endpointsOf(terminal: Terminal, { kind, algorithm, failsOver, endpoints }: EndpointsShown): string {
  if (endpoints.length === 0) return 'none\n'
  const turns = algorithm === 'round_robin' ? 'in turns' : algorithm === 'weighted' ? 'by weight' : 'to the least busy'
  const spread = `${turns}${failsOver ? ', and on to the next where one fails' : ''}\n`
  const order = kind === 'single' ? '' : kind === 'failover' ? 'the first that is ready\n' : spread
  const cells = endpoints.map(({ url, state, retryInMs }) => {
    return [escapeControls(url), state, retryInMs < 0 ? '' : `${(retryInMs / 1000).toFixed(1)} s`]
  })
  return `${order}${table(terminal, ['URL', 'state', 'retry in'], cells)}`
}

function handlersOf(terminal: Terminal, { handlers }: ApiAnswer): string {
  if (handlers.length === 0) return 'none: requests pass\n'
  const cells = handlers.map(({ name, about }, at) => [String(at + 1), name, escapeControls(about)])
  return table(terminal, ['', 'handler', 'does'], cells)
}

function resourcesOf(terminal: Terminal, { resources }: ApiAnswer): string {
  if (resources.length === 0) return 'every path and method\n'
  const cells = resources.map(({ template, verb, authType, tier, scopes }) =>
    [template, verb, authType, tier, scopes.join(' ')].map(escapeControls),
  )
  return table(terminal, ['template', 'method', 'auth type', 'tier', 'scopes'], cells)
}
