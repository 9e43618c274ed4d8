/** Help texts of the commands, and `help`, which prints a page of the guide. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { printable } from '../config/diagnostics.ts'
import { type CliArguments, EXIT_USAGE, UsageError } from './arguments.ts'
import type { Terminal } from './terminal.ts'

const GUIDE = resolve(import.meta.dirname, '../../conf/guide')
/** The topic that is generated, and lies beside the guide. */
const REFERENCE = 'reference'

const COMMON_OPTIONS = `  --home DIR               folder with deployment.toml and apis/ (default: conf/)
  --data DIR               folder for the files that the gateway writes (default: data/ in the home)
  --set section.key=value  override one key; may be repeated
  --json                   output for scripts
  --help                   print this text`

const COMMANDS: Readonly<Record<string, string>> = {
  start: 'start                run the gateway until SIGTERM or SIGINT',
  init: 'init                 make a home: a commented deployment.toml with its schema, and the sample API',
  check: 'check                validate configuration and APIs: list every error; exit code 78 if there is one',
  explain: 'explain [KEY]        show every value in effect and where it is set, or all about one key or section',
  reference: 'reference [FILE...]  print the reference of all keys, or write reference, schema or template to FILE',
  why: 'why [CODE [STATE]]   explain an error code: its meanings and what to check; without CODE, list all',
  walk: 'walk URL             send one request through the running gateway and show its steps in microseconds',
  connections: 'connections          list the connections of the running gateway, by side and state',
  failures: 'failures [ID]        list the last exchanges that failed or were slow, or show the timeline of one',
  reload: 'reload               make the running gateway read configuration, APIs and key stores again',
  upgrade: 'upgrade              replace the running gateway by a new process; no request fails',
  endpoints: 'endpoints [on|off N] list the endpoints of the running gateway and their states; switch one on or off',
  pools: 'pools                list the pools of worker threads: messages that run and wait, refusals, waits',
  advise: 'advise               which limits the running gateway has hit, which are never near, and what to set',
  tune: 'tune [PATH]          measure which sizes of pools and limits serve an API best, and propose changes',
  api: 'api WORD...          the APIs of the running gateway: list, show NAME, lifecycle NAME ACTION',
  application:
    'application WORD...  applications of the running gateway: list, create, show, delete, approve, reject NAME',
  key: 'key WORD APP...      keys of an application: generate, list, approve, reject, api, renew, remove CONSUMER_KEY',
  subscription: 'subscription WORD... list [APP], add, approve, reject, block, unblock, remove APP API',
  user: 'user WORD...         list, add NAME, passwd NAME, remove NAME',
  mail: 'mail WORD            mails of the platform: list those that wait or were given up, retry those given up',
  throttle: 'throttle WORD...     limits: top, reset KEY; policy list, show, apply, remove; deny list, add, remove …',
  token: 'token APP            print an access token for an application, by its own client credentials',
  revoke: 'revoke               revoke a token or an API key, which is read from standard input',
  healthcare:
    'healthcare WORD...   load FILE [API]: services into a healthcare API; sample COUNT: prints sample services',
  help: 'help [TOPIC]         print a page of the guide; without TOPIC, this list',
}

const RUNNING_GATEWAY = `Calls the gateway that uses the data folder: give the same --home and --data as to start.
`

/** Options and examples of single commands. */
const DETAILS: Readonly<Record<string, string>> = {
  start: `  --sample                 also start the sample backend, at the endpoint of the API named Sample
  --watch                  deploy API files as they change; changes of the configuration need a reload
  --wait SECONDS           wait for a database that cannot be reached, 3600 at most; /healthz answers meanwhile
`,
  reload: `Prints what is applied and what needs a restart. A configuration with errors is refused as a whole.
An API project with errors keeps its deployed version, and the others are deployed. SIGHUP does the same and reopens
the access log. Exit code 0: everything is applied; 78: refused, nothing has changed; 1: applied, except for a part
that has failed (an API with errors, a thread that has not applied it), or there is no gateway to call.
${RUNNING_GATEWAY}`,
  upgrade: `Starts the program that this command belongs to, with the arguments of the running gateway. The new process
takes over the open ports and reads configuration and APIs anew, keys that need a restart too; then the old one
finishes what is in flight and ends. Where the new one cannot start, the old one goes on. Exit code 0: the new process
serves.
${RUNNING_GATEWAY}`,
  why: `STATE is a number, 0 to 8, or its name. With STATE, CODE is a base code as in the event log (BASE_ERROR_CODE and
INTERNAL_STATE): sluice why 101504 3, sluice why 101504+REQUEST_DONE
`,
  explain: `  --changed                only values that differ from their defaults
  --burst N                messages that arrive at once, for the calculations of pools (default 1000)
KEY is a path, a section, the end of a path, or a part of a path, which lists all keys that contain it.
Secrets are shown as (set), with --json too.
`,
  reference: `The name of FILE selects the document: .md the reference, .schema.json the JSON Schema for editors,
.toml a template with every key commented out at its default. A .toml file that sets a key is not overwritten.
With --json and without FILE: keys, defaults and rules for scripts.
`,
  walk: `  -X, --method METHOD      default: GET, or POST with a body
  -H, --header 'K: V'      a header field; may be repeated
  -d, --body TEXT          body of the request
URL is a path, or a URL whose scheme and port select the listener; its host is only sent as the Host field.
${RUNNING_GATEWAY}`,
  connections: `  --side source|target     only connections of clients, or only connections to backends
  --state STATE            only connections in this state, such as REQUEST_DONE
  --limit N                at most N rows (default 1000 for each reactor); all connections are counted
${RUNNING_GATEWAY}`,
  failures: `  --api NAME               only those of an API: Orders, or Orders:1.0.0
  --code CODE              only with this error code, or base code
  --status STATUS          only with this status, or 5 for all of 500 to 599
  --side source|target|gateway  only where clients, backends or the gateway are the cause
  --since TIME             only those that ended later: 90s, 10m, 2h, or 2027-06-30T12:00:00Z
  --limit N                at most N (default: 50)
  -f, --follow             go on, and print each exchange as it ends
  --har                    print an HTTP archive (HAR 1.2), which browsers import; without bodies and fields
ID is an id of the list, or a correlation id. recorder.size says how many each reactor keeps, recorder.slow_threshold
from which duration on an exchange is slow. Exit code 1: there is none with this ID, or a reactor did not answer.
${RUNNING_GATEWAY}`,
  endpoints: `sluice endpoints           list all endpoints, with API, state and last error
sluice endpoints off NAME  take NAME out of service until it is switched on or the gateway restarts
sluice endpoints on NAME   make NAME active, whatever its state
NAME is a name in the list, or the URL of a backend for all endpoints with this URL.
${RUNNING_GATEWAY}`,
  pools: `Rows http and https: messages of the clients of each transport; background: messages without a waiting client.
running and waiting count the whole process, as core, max and queue do.
${RUNNING_GATEWAY}`,
  advise: `Makes no load: reads what the gateway has counted since its start. A proposal comes with its calculation.
With --json: machine, traffic (requests, seconds), findings with verdict (hit or ample), key, current, proposed, seen
and reason.
${RUNNING_GATEWAY}`,
  tune: `sluice tune /orders/1.0.0/list        against this API of the home, and its real backend
sluice tune --delays FILE             against a synthetic backend with recorded delays
Starts a gateway of its own, on free ports, with a copy of the home and a temporary data folder. FILE has milliseconds,
or quantiles such as p50 12 p99 80. One size is varied at a time, in random order; what is not decided is not proposed.
  --clients N              most clients at once that are expected (default: 64)
  --seconds N              length of one measurement (default: 2)
  --repeats N              measurements of each value (default: 5)
  --p99 MS                 longest 99th percentile: find the highest rate that keeps it
  --only LIST              reactors, workers, queue, connections, buffer (default: all of them)
  --seed N                 repeat an earlier order
  -X, -H, -d               method, header fields, body of the request
  --report FILE            also write a report as one HTML page, and its data as JSON beside it
  --json                   print the results with all measurements as JSON, in place of the curve
  --apply                  change deployment.toml, keep the old file beside it, and reload the running gateway;
                           what it refuses is taken back
`,
  api: `sluice api list                       all APIs and their lifecycle states
sluice api show NAME                  one API: paths, state, endpoints, CORS, filter chain, resources
sluice api lifecycle NAME ACTION      change the state, on every reactor; the data folder keeps the change
  --sunset DATE            with Deprecate: the announced end, such as 2027-06-30 or 2027-06-30T12:00:00Z (UTC)
NAME is Orders, Orders:1.0.0 or a path such as /orders/1.0.0. ACTION is Publish, Re-Publish, Block, Deprecate, Retire,
"Deploy as a Prototype" or "Demote to Created", in any case, or the target state. An API starts in the state that its
project declares; a project that later declares another state overrides the change.
Exit code 0: the change is applied everywhere; 1: nothing has changed, or a reactor has not applied it yet (--json:
failures); 2: the command line is invalid.
${RUNNING_GATEWAY}`,
  application: `  --owner USER             owner of the application (default: the super admin)
  --tenant DOMAIN          tenant of the owner (default: carbon.super)
  --tier NAME              throttling policy (default: Unlimited)
  --token-type TYPE        JWT or OPAQUE, for its access tokens (default: JWT)
  --description TEXT       description in lists
  --reason TEXT            approve, reject: the reason, for lists and the log
NAME is the name or the id of an application. Applications in files of the home are listed, and cannot be changed.
${RUNNING_GATEWAY}`,
  key: `sluice key generate APP              consumer key and secret; the secret is shown once
sluice key approve APP               what "key generate" has requested: repeat it for keys (reject refuses)
sluice key renew APP CONSUMER_KEY    a new secret; the old one becomes invalid
sluice key api APP                   an API key, shown once; it is valid until it expires or is revoked
  --type TYPE              PRODUCTION or SANDBOX (default: PRODUCTION)
  --grants LIST            generate: client_credentials, password, refresh_token, authorization_code, ...
  --callback URL           generate: redirect URI of authorization_code; several with commas
  --validity SECONDS       generate: lifetime of access tokens; api: lifetime of the key (-1: the longest)
  --ips LIST               api: addresses and networks that may use the key
  --referers LIST          api: referers that may use the key
  --owner, --tenant        owner of the application
${RUNNING_GATEWAY}`,
  subscription: `sluice subscription add Shop Orders:1.0.0 --tier Gold
API is name:version. Requests of a blocked subscription get 900907, on every reactor when the command ends;
block-production blocks only production keys. A subscription that waits for approval, or was rejected, gets 900909.
  --tier NAME              add: the plan (default: the first plan of the API, else Unlimited)
  --reason TEXT            approve, reject: the reason, for lists and the log
  --owner, --tenant        owner of the application
${RUNNING_GATEWAY}`,
  throttle: `sluice throttle top                             counters in use, those nearest to their limit first
sluice throttle reset KEY                       the counters of a key begin anew
sluice throttle policy list [LEVEL]             application, subscription, advanced or custom
sluice throttle policy show LEVEL NAME
sluice throttle policy apply FILE               creates the policy of the file, or replaces it
sluice throttle policy remove LEVEL NAME        a policy in use is refused
sluice throttle deny add TYPE VALUE             API /orders/1.0.0, APPLICATION owner:name, USER name,
                                                SUBSCRIPTION /orders/1.0.0:owner:name, IP address, IPRANGE from-to
sluice throttle deny list
sluice throttle deny enable|disable|remove ID   or the value of the deny policy
A change is in force on every reactor when the command ends. Policies of files are changed in their files.
  --level LEVEL            apply: level, where neither folder nor subtype of the file names it
  --by rate|limit          top: by rate, or by nearness to the limit (default)
  --limit N                top: rows (default: 20)
  --json                   top: JSON
  --invert true            deny add: of IP and IPRANGE, denies every address but these
${RUNNING_GATEWAY}`,
  user: `The password is the first line of standard input; without one a password is generated and shown once.
  --roles LIST             add: roles, with commas
  --tenant DOMAIN          tenant of the user (default: carbon.super)
${RUNNING_GATEWAY}`,
  token: `Prints the token and nothing else: curl -H "Authorization: Bearer $(sluice token Shop)" ...
  --type TYPE              keys to use, PRODUCTION or SANDBOX (default: PRODUCTION)
  --scopes LIST            scopes, with commas
  --owner, --tenant        owner of the application
${RUNNING_GATEWAY}`,
  healthcare: `sluice healthcare load FILE [API]    stores the services of FILE, one JSON text a line; -: standard input
sluice healthcare sample COUNT       prints so many sample services for it, always the same ones
Writes into the database of the API (default: HealthcareService), beside a running gateway too. Services keep their
ids; a known id gets its next version. Lines with faults are left out and told; exit code 1 if there is one.
With --json: loaded, refused, and the first faults with their lines.
`,
  revoke: `sluice revoke < token.txt            revokes a JWT of any issuer, on every reactor when the command ends
A node without a key manager stores the revocation itself (apim.token.revocation.enable_persistent_notifier). A token
that is no JWT is known to its key manager only: revoke it at /revoke, with the credentials of its client.
${RUNNING_GATEWAY}`,
}

/** The help text of one command; of all commands, with the topics of the guide, for any other word. */
export function usage(command: string): string {
  const own = COMMANDS[command]
  const listed = own === undefined ? Object.values(COMMANDS) : [own]
  const details = DETAILS[command] === undefined ? '' : `\n${DETAILS[command]}`
  const topics = own === undefined || command === 'help' ? `\nTopics of the guide:\n${topicList()}` : ''
  const commands = listed.map(line => `  sluice ${line}\n`).join('')
  return `Usage:\n${commands}${details}${topics}\nOptions:\n${COMMON_OPTIONS}\n`
}

function topicList(): string {
  return topics()
    .map(topic => `  ${topic.padEnd(20)} ${/^# (.*)$/m.exec(page(topic))?.[1] ?? ''}\n`)
    .join('')
}

function topics(): readonly string[] {
  const pages = readdirSync(GUIDE).filter(name => name.endsWith('.md'))
  return [...pages.map(name => name.slice(0, -'.md'.length)), REFERENCE].sort()
}

function page(topic: string): string {
  return readFileSync(join(GUIDE, topic === REFERENCE ? '..' : '', `${topic}.md`), 'utf8')
}

/** `help`: prints a page of the guide. Throws UsageError. */
export async function help(
  { rest }: CliArguments,
  output: Terminal = process.stdout,
  errorOutput: Terminal = process.stderr,
): Promise<number> {
  const [topic, ...more] = rest
  if (more.length > 0) {
    errorOutput.write(usage('help'))
    return EXIT_USAGE
  }
  const known = topics()
  if (topic !== undefined && !known.includes(topic))
    throw new UsageError(`there is no topic ${printable(topic)}; the topics are ${known.join(', ')}`)
  output.write(topic === undefined ? usage('') : page(topic))
  return 0
}
