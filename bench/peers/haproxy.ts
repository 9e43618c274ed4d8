/**
 * HAProxy in HTTP mode: one thread, or two on two processors, backend connections shared between requests, default
 * buffers of 16 KiB; a variant for large bodies has 64 KiB. Without `no strict-limits` HAProxy would not start where
 * the limit of open files is below twice the number of client connections, which no scenario needs.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Certificate } from '../certificate.ts'
import { ISSUER, tokenIssuer } from '../token-issuer.ts'
import { findExecutable, Program, pinned } from '../program.ts'
import { type Peer, type PeerOptions, FAIL_OVER_SETTINGS, isMediating, workersOf } from './peer.ts'

const TRANSFORM = fileURLToPath(new URL('haproxy-transform.lua', import.meta.url))

function configuration(options: PeerOptions, tuning: string): string {
  return `global
  nbthread ${workersOf(options.capability).workers}
  maxconn 12000
  no strict-limits
  ${isMediating(options.capability) ? `lua-load ${TRANSFORM}` : ''}
  ${tuning}
defaults
  mode http
  option forwardfor
  http-reuse always
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  timeout tunnel 1h
${frontend(options)}`
}

function frontend(options: PeerOptions): string {
  const { port, certificate, backendCertificate, capability, downloadPort, uploadPort, echoPort, replicaPorts } =
    options
  const secured = certificate === undefined ? '' : ` ssl crt ${certificate.bundleFile} ssl-min-ver TLSv1.2`
  const front = `frontend traffic\n  bind 127.0.0.1:${port} backlog 4096${secured}\n`
  if (capability === 'tunnels') return `${front}  default_backend echo\n${backend('echo', echoPort)}`
  if (capability === 'fail-over') return `${front}  default_backend replicas\n${replicas(replicaPorts)}`
  if (capability === 'secured')
    return `${front}${tokenChecks(options)}${backend('downloads', downloadPort)}${STICK_TABLES}`
  if (isMediating(capability))
    return `${front}${TRANSFORMING}${backend('downloads', downloadPort)}${backend('uploads', uploadPort)}`
  const uploads = '  use_backend uploads if { path_beg /upload/ }\n  default_backend downloads\n'
  const downloads = backend('downloads', downloadPort, backendCertificate)
  return `${front}${uploads}${downloads}${backend('uploads', uploadPort)}`
}

/** Bodies of the load are shorter than a buffer (16 KiB), in which HAProxy waits for all of one. */
const TRANSFORMING = `  acl mediated path_beg /mediation/
  http-request wait-for-body time 5s if mediated
  http-request lua.transform if mediated
  filter lua.transform
  use_backend uploads if mediated
  default_backend downloads
`

function backend(name: string, port: number, certificate?: Certificate): string {
  const verified = certificate === undefined ? '' : ` ssl verify required ca-file ${certificate.chainFile}`
  return `backend ${name}\n  server one 127.0.0.1:${port}${verified}\n`
}

/**
 * Verifies the token of each request; HAProxy has no cache for this. Two stick tables (client and API) stand for
 * quotas, and the log of requests goes to a file.
 */
function tokenChecks({ folder }: Pick<PeerOptions, 'folder'>): string {
  const denied = 'http-request deny deny_status 401 unless'
  return `  log fd@3 format raw local0
  option httplog
  http-request set-var(txn.alg) http_auth_bearer,jwt_header_query('$.alg')
  http-request set-var(txn.iss) http_auth_bearer,jwt_payload_query('$.iss')
  http-request set-var(txn.exp) http_auth_bearer,jwt_payload_query('$.exp','int')
  http-request set-var(txn.client) http_auth_bearer,jwt_payload_query('$.azp')
  http-request set-var(txn.now) date
  ${denied} { var(txn.alg) -m str RS256 }
  ${denied} { var(txn.iss) -m str ${ISSUER} }
  ${denied} { http_auth_bearer,jwt_verify(txn.alg,"${folder}/issuer.pem") 1 }
  ${denied} { var(txn.exp),sub(txn.now) -m int gt 0 }
  http-request track-sc0 var(txn.client) table clients
  http-request track-sc1 str(Chain) table apis
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 } || { sc_http_req_rate(1) gt 1000000000 }
  http-request del-header Authorization
  default_backend downloads
`
}

const STICK_TABLES = ['clients', 'apis']
  .map(name => `backend ${name}\n  stick-table type string len 64 size 100k expire 2m store http_req_rate(60s)\n`)
  .join('')

/** HAProxy detects a failure by health checks: four in the time for which the other proxies suspend a backend. */
function replicas([first, second]: readonly [number, number]): string {
  const check = `check inter ${FAIL_OVER_SETTINGS.suspendMs / 4}ms fall 1 rise 1`
  return `backend replicas
  balance roundrobin
  option redispatch
  option httpchk GET /1k
  timeout connect ${FAIL_OVER_SETTINGS.timeoutMs}ms
  timeout server ${FAIL_OVER_SETTINGS.timeoutMs}ms
  server first 127.0.0.1:${first} ${check}
  server second 127.0.0.1:${second} ${check}
`
}

function version(): string {
  const said = spawnSync(findExecutable('haproxy')!, ['-v'], { encoding: 'utf8' }).stdout
  return said.split(' ').slice(0, 3).join(' ')
}

/** Writes the configuration and the files that it refers to; returns the path of the configuration. */
export function writeConfiguration(options: PeerOptions, tuning = ''): string {
  const file = `${options.folder}/haproxy.cfg`
  writeFileSync(file, configuration(options, tuning))
  if (options.capability === 'secured') writeFileSync(`${options.folder}/issuer.pem`, tokenIssuer().publicPem)
  return file
}

async function start(name: string, options: PeerOptions, tuning: string): Promise<Program> {
  const file = writeConfiguration(options, tuning)
  const command = [findExecutable('haproxy')!, '-db', '-f', file]
  // HAProxy cannot open log files, but it writes to an open descriptor.
  const logging = ['sh', '-c', `exec "$@" 3>>${options.folder}/haproxy.log`, 'sh', ...command]
  const { cores } = workersOf(options.capability)
  const program = new Program(name, pinned(cores, options.capability === 'secured' ? logging : command))
  await program.waitForPort(options.port)
  return program
}

function missing(): string | undefined {
  return findExecutable('haproxy') === undefined ? 'not installed: apt-get install haproxy' : undefined
}

const CAPABILITIES = [
  'requests',
  'two-cores',
  'tls',
  'tls-backend',
  'handshakes',
  'tunnels',
  'fail-over',
  'secured',
  'hot-path',
  'mediation',
  'mediation-delay',
] as const

export const HAPROXY: readonly Peer[] = [
  { name: 'haproxy', capabilities: CAPABILITIES, missing, version, start: options => start('haproxy', options, '') },
  {
    name: 'haproxy-64k',
    capabilities: ['requests'],
    largeBodiesOnly: true,
    missing,
    version,
    start: options => start('haproxy-64k', options, 'tune.bufsize 65536'),
  },
]
