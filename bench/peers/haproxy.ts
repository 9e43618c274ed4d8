/**
 * HAProxy in HTTP mode: one thread, backend connections shared between requests, with its default buffers of 16 KiB
 * and, where bodies are large, once more with 64 KiB. Without `no strict-limits` it refuses to start unless twice as
 * many descriptors as client connections are allowed, which no scenario needs.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { Certificate } from '../certificate.ts'
import { ISSUER, tokenIssuer } from '../token-issuer.ts'
import { findExecutable, PROXY_CORE, Program, pinned } from '../program.ts'
import { type Peer, type Place, TWINS } from './peer.ts'

function configuration(place: Place, tuning: string): string {
  return `global
  nbthread 1
  maxconn 12000
  no strict-limits
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
${frontend(place)}`
}

function frontend(place: Place): string {
  const { port, certificate, backendCertificate, ability, downloadPort, uploadPort, echoPort, twinPorts } = place
  const secured = certificate === undefined ? '' : ` ssl crt ${certificate.bundleFile} ssl-min-ver TLSv1.2`
  const front = `frontend traffic\n  bind 127.0.0.1:${port} backlog 4096${secured}\n`
  if (ability === 'tunnels') return `${front}  default_backend echo\n${backend('echo', echoPort)}`
  if (ability === 'fail-over') return `${front}  default_backend twins\n${twins(twinPorts)}`
  if (ability === 'secured') return `${front}${verifying(place)}${backend('downloads', downloadPort)}${COUNTERS}`
  const uploads = '  use_backend uploads if { path_beg /upload/ }\n  default_backend downloads\n'
  const downloads = backend('downloads', downloadPort, backendCertificate)
  return `${front}${uploads}${downloads}${backend('uploads', uploadPort)}`
}

function backend(name: string, port: number, certificate?: Certificate): string {
  const verified = certificate === undefined ? '' : ` ssl verify required ca-file ${certificate.chainFile}`
  return `backend ${name}\n  server one 127.0.0.1:${port}${verified}\n`
}

/**
 * It verifies each token anew, and remembers none. Two counters, of the client and of the API, stand for the quotas,
 * and a line for each request goes to a file.
 */
function verifying({ folder }: Pick<Place, 'folder'>): string {
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

const COUNTERS = ['clients', 'apis']
  .map(name => `backend ${name}\n  stick-table type string len 64 size 100k expire 2m store http_req_rate(60s)\n`)
  .join('')

/** It learns of an illness from its own checks, four in the time for which the others leave a backend alone. */
function twins([first, second]: readonly [number, number]): string {
  const check = `check inter ${TWINS.suspendMs / 4}ms fall 1 rise 1`
  return `backend twins
  balance roundrobin
  option redispatch
  option httpchk GET /1k
  timeout connect ${TWINS.timeoutMs}ms
  timeout server ${TWINS.timeoutMs}ms
  server first 127.0.0.1:${first} ${check}
  server second 127.0.0.1:${second} ${check}
`
}

function version(): string {
  const said = spawnSync(findExecutable('haproxy')!, ['-v'], { encoding: 'utf8' }).stdout
  return said.split(' ').slice(0, 3).join(' ')
}

/** And what it names. */
export function writeConfiguration(place: Place, tuning = ''): string {
  const file = `${place.folder}/haproxy.cfg`
  writeFileSync(file, configuration(place, tuning))
  if (place.ability === 'secured') writeFileSync(`${place.folder}/issuer.pem`, tokenIssuer().publicPem)
  return file
}

async function start(name: string, place: Place, tuning: string): Promise<Program> {
  const file = writeConfiguration(place, tuning)
  const command = [findExecutable('haproxy')!, '-db', '-f', file]
  // It has no log files of its own; a descriptor that is open already it takes.
  const logging = ['sh', '-c', `exec "$@" 3>>${place.folder}/haproxy.log`, 'sh', ...command]
  const program = new Program(name, pinned(PROXY_CORE, place.ability === 'secured' ? logging : command))
  await program.accepting(place.port)
  return program
}

function missing(): string | undefined {
  return findExecutable('haproxy') === undefined ? 'not installed: apt-get install haproxy' : undefined
}

const ABILITIES = ['requests', 'tls', 'tls-backend', 'handshakes', 'tunnels', 'fail-over', 'secured'] as const

export const HAPROXY: readonly Peer[] = [
  { name: 'haproxy', abilities: ABILITIES, missing, version, start: place => start('haproxy', place, '') },
  {
    name: 'haproxy-64k',
    abilities: ['requests'],
    forBodiesOnly: true,
    missing,
    version,
    start: place => start('haproxy-64k', place, 'tune.bufsize 65536'),
  },
]
