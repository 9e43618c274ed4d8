/** `api`: lists and shows the APIs of the running gateway, and changes their lifecycle states. */
import { ACTIONS, targetState } from '../apis/lifecycle-states.ts'
import { shownName } from '../apis/policy-names.ts'
import { escapeControls } from '../observe/escape.ts'
import type {
  ApiDetails,
  ApisReport,
  ApiSummary,
  EndpointsSummary,
  FlowSummary,
  LifecycleReport,
} from '../primary/api-service.ts'
import { type CliArguments, type CommandOptions, EXIT_FAILED, EXIT_USAGE, UsageError } from './arguments.ts'
import { sendAndReport } from './control-client.ts'
import { usage } from './help.ts'
import { paint, retryText, table, type Terminal } from './terminal.ts'

export async function api(
  args: CliArguments,
  { sunset }: Pick<CommandOptions, 'sunset'>,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [word, name, ...action] = args.rest
  if (sunset !== '' && word !== 'lifecycle') throw new UsageError('--sunset is an option of api lifecycle')
  if (word === 'list' && name === undefined) return list(args, output, errorOutput)
  if (word === 'show' && name !== undefined && action.length === 0) return show(args, name, output, errorOutput)
  if (word === 'lifecycle' && name !== undefined && action.length > 0) {
    return changeLifecycle(args, { name, ...readAction(action.join(' '), sunset) }, output, errorOutput)
  }
  errorOutput.write(usage('api'))
  return EXIT_USAGE
}

// ---- list -----------------------------------------------------------------------------------------------------------

const HEADING = ['API', 'state', 'since', 'sunset', 'declared', 'path', 'hosts', 'transports', 'mediation', 'mounted']

function list(args: CliArguments, output: Terminal, errorOutput: Terminal): Promise<number> {
  return sendAndReport<ApisReport>(args.dataDir, { command: 'apis' }, errorOutput, ({ apis }) => {
    if (args.json) output.write(`${JSON.stringify(apis, null, 2)}\n`)
    else if (apis.length === 0) output.write('no API\n')
    else output.write(table(output, HEADING, apis.map(cellsOf)))
    return 0
  })
}

function cellsOf(summary: ApiSummary) {
  const { name, version, state, since, sunset, declared, paths, hosts, transports, mediation, mounted } = summary
  const onlyTransport = transports.length === 1 ? transports[0]! : ''
  const otherDeclared = declared === state ? '' : declared
  const dates = [timeText(since), timeText(sunset)]
  const cells = [
    `${name}:${version}`,
    state,
    ...dates,
    otherDeclared,
    paths[0]!,
    hosts.join(' '),
    onlyTransport,
    mediation,
    mounted,
  ]
  return cells.map(escapeControls)
}

/** `2027-06-30 12:00:00Z`. */
function timeText(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z')
}

// ---- show -----------------------------------------------------------------------------------------------------------

function show(args: CliArguments, name: string, output: Terminal, errorOutput: Terminal): Promise<number> {
  return sendAndReport<ApiDetails>(args.dataDir, { command: 'api', name }, errorOutput, details => {
    output.write(args.json ? `${JSON.stringify(details, null, 2)}\n` : describe(details, output))
    return 0
  })
}

const LABEL_WIDTH = 12

function describe(details: ApiDetails, terminal: Terminal): string {
  const { name, version, paths, hosts, transports, isAi } = details
  const rows: readonly (readonly [label: string, text: string])[] = [
    ['paths', paths.join(', ')],
    ['hosts', hosts.length === 0 ? 'all' : hosts.join(', ')],
    ['transports', transports.join(', ')],
    ['kind', isAi ? 'API of a language model' : ''],
    ...lifecycleRows(details),
    ['CORS', corsText(details)],
    ...accessRows(details),
  ]
  const lines = rows
    .filter(([, text]) => text !== '')
    .map(([label, text]) => `${paint(terminal, 'dim', label.padEnd(LABEL_WIDTH))}${escapeControls(text)}\n`)
  return [
    `${paint(terminal, 'bold', escapeControls(`${name}:${version}`))}\n`,
    ...lines,
    ...backendSections(terminal, details),
    section(terminal, 'filters', filtersText(terminal, details)),
    details.flows.length === 0 ? '' : section(terminal, 'mediation', mediationText(terminal, details)),
    section(terminal, 'resources', resourcesText(terminal, details)),
  ].join('')
}

/** Endpoints, or the module in their place. */
function backendSections(terminal: Terminal, { mounted, production, sandbox }: ApiDetails): readonly string[] {
  if (mounted !== '') return [section(terminal, 'mounted', `${escapeControls(mounted)}, on worker threads\n`)]
  return [
    section(terminal, 'production endpoints', endpointsText(terminal, production)),
    section(terminal, 'sandbox endpoints', endpointsText(terminal, sandbox)),
  ]
}

function section(terminal: Terminal, title: string, body: string): string {
  return `\n${paint(terminal, 'bold', title)}\n${body}`
}

function lifecycleRows({ state, declared, since, sunset, actions }: ApiDetails) {
  const start = since === '' ? '' : ` since ${since}`
  const declaration = declared === state ? '' : `; its project declares ${declared}`
  return [
    ['lifecycle', `${state}${start}${declaration}`],
    ['sunset', sunset],
    ['actions', actions.length === 0 ? 'none' : actions.join(', ')],
  ] as const
}

function corsText({ cors }: ApiDetails): string {
  if (cors === null || !cors.enabled) return 'off'
  const { origins, methods, headers, exposedHeaders, credentials, maxAgeS } = cors
  const parts = [
    `origins ${orNone(origins)}`,
    `methods ${orNone(methods)}`,
    `headers ${orNone(headers)}`,
    exposedHeaders.length === 0 ? '' : `exposes ${exposedHeaders.join(' ')}`,
    credentials ? 'with credentials' : '',
    maxAgeS < 0 ? '' : `for ${maxAgeS} s`,
  ]
  return parts.filter(part => part !== '').join('; ')
}

function orNone(words: readonly string[]): string {
  return words.length === 0 ? 'none' : words.join(' ')
}

function accessRows({ access: { provider, plans, tier, authHeader, securitySchemes } }: ApiDetails) {
  const schemes = securitySchemes.length === 0 ? 'oauth2' : securitySchemes.join(', ')
  const field = authHeader === '' ? '' : ` in ${authHeader}`
  return [
    ['provider', provider],
    ['plans', plans.join(', ')],
    ['tier', tier],
    ['security', schemes + field],
  ] as const
}

const ALGORITHMS: Readonly<Record<EndpointsSummary['algorithm'], string>> = {
  round_robin: 'round robin',
  weighted: 'weighted',
  least_pending: 'least pending requests',
}

function endpointsText(terminal: Terminal, { kind, algorithm, failsOver, endpoints }: EndpointsSummary): string {
  if (endpoints.length === 0) return 'none\n'
  const balancing = `${ALGORITHMS[algorithm]}${failsOver ? '; a failed request goes to the next endpoint' : ''}\n`
  const selection = kind === 'single' ? '' : kind === 'failover' ? 'the first endpoint that is ready\n' : balancing
  const cells = endpoints.map(({ url, state, retryInMs }) => [escapeControls(url), state, retryText(retryInMs)])
  return `${selection}${table(terminal, ['URL', 'state', 'retry in'], cells)}`
}

function filtersText(terminal: Terminal, { filters }: ApiDetails): string {
  if (filters.length === 0) return 'none: all requests pass\n'
  const cells = filters.map(({ name, about }, at) => [String(at + 1), name, escapeControls(about)])
  return table(terminal, ['', 'filter', 'does'], cells)
}

const RUNS: Readonly<Record<FlowSummary['needs'], string>> = {
  nothing: '',
  constant: 'while the head is written',
  heads: 'on the reactor',
  worker: 'on a worker',
}

function mediationText(terminal: Terminal, { flows }: ApiDetails): string {
  const cells = flows.map(({ operation, flow, sequences, needs }) =>
    [operation || 'all others', flow, sequences.map(shownName).join(', '), RUNS[needs]].map(escapeControls),
  )
  return table(terminal, ['operation', 'flow', 'sequences', 'run'], cells)
}

function resourcesText(terminal: Terminal, { resources }: ApiDetails): string {
  if (resources.length === 0) return 'all paths and methods\n'
  const cells = resources.map(({ template, verb, authType, tier, scopes }) =>
    [template, verb, authType, tier, scopes.join(' ')].map(escapeControls),
  )
  return table(terminal, ['template', 'method', 'auth type', 'tier', 'scopes'], cells)
}

// ---- lifecycle ------------------------------------------------------------------------------------------------------

interface LifecycleRequest {
  readonly name: string
  readonly action: string
  readonly sunsetMs?: number
}

/** Throws UsageError. */
function readAction(action: string, sunset: string): Omit<LifecycleRequest, 'name'> {
  const target = targetState(action)
  if (target === undefined) throw new UsageError(`an action is one of ${ACTIONS.join(', ')}`)
  if (sunset === '') return { action }
  if (target !== 'DEPRECATED') throw new UsageError('--sunset goes with Deprecate')
  const sunsetMs = parseSunset(sunset)
  if (sunsetMs === undefined) throw new UsageError('--sunset is a date, such as 2027-06-30 or 2027-06-30T12:00:00Z')
  return { action, sunsetMs }
}

const SUNSET = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/

/**
 * Parses an ISO 8601 date, with or without a time, to milliseconds since 1970; undefined if it is invalid. A time
 * without a zone is UTC; a date without a time is its first moment.
 */
export function parseSunset(text: string): number | undefined {
  const [whole, date, zone] = SUNSET.exec(text) ?? []
  if (whole === undefined) return undefined
  // `Date` moves a day that the month lacks into the next month.
  const day = new Date(`${date}T00:00:00Z`)
  if (Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== date) return undefined
  const ms = Date.parse(whole.includes('T') && zone === undefined ? `${whole}Z` : whole)
  return Number.isNaN(ms) ? undefined : ms
}

function changeLifecycle(
  args: CliArguments,
  change: LifecycleRequest,
  output: Terminal,
  errorOutput: Terminal,
): Promise<number> {
  return sendAndReport<LifecycleReport>(args.dataDir, { command: 'lifecycle', ...change }, errorOutput, report => {
    const { name, version, from, state, sunset, failures } = report
    if (args.json) output.write(`${JSON.stringify(report, null, 2)}\n`)
    else {
      const sunsetText = sunset === '' ? '' : `, sunset ${timeText(sunset)}`
      const text = `${escapeControls(`${name}:${version}`)}: ${from} -> ${state}${sunsetText}`
      output.write(`${paint(output, 'green', 'applied')}  ${text}\n`)
      for (const failure of failures)
        output.write(`${paint(output, 'red', 'failed')}   ${escapeControls(failure.split('\n')[0]!)}\n`)
    }
    return failures.length === 0 ? 0 : EXIT_FAILED
  })
}
