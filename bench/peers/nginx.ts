/**
 * nginx as a reverse proxy: one worker, upstream keep-alive, bodies never written to disk. Once with its default
 * buffers and once, where bodies are large, with buffers as large as the gateway's, which suits it better.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { type Certificate, SERVER_NAME } from '../certificate.ts'
import { findExecutable, PROXY_CORE, Program, pinned } from '../program.ts'
import { type Peer, type Place, TWINS } from './peer.ts'

const LARGE_BUFFERS = `proxy_buffers 16 64k; proxy_buffer_size 16k; proxy_busy_buffers_size 256k;
  client_body_buffer_size 64k;`
const KEEP = 'keepalive 128; keepalive_requests 1000000000; keepalive_timeout 3600s;'

function configuration(place: Place, buffers: string): string {
  const { folder } = place
  return `daemon off; pid ${folder}/nginx.pid; error_log stderr crit; worker_processes 1;
worker_rlimit_nofile ${2 * connectionsMax(place)};
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections ${connectionsMax(place)}; }
http {
  access_log off; tcp_nodelay on; gzip off;
  keepalive_timeout 3600s; keepalive_requests 1000000000; client_max_body_size 0;
  client_body_temp_path ${folder}; proxy_temp_path ${folder};
  fastcgi_temp_path ${folder}; uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_request_buffering off;
  proxy_max_temp_file_size 0;
  ${buffers}
  ${server(place)}
}
`
}

/** Each takes memory from the start, so that there are no more than a scenario needs: a tunnel has two. */
function connectionsMax({ ability }: Place): number {
  return ability === 'tunnels' ? 24_576 : 16_384
}

function server(place: Place): string {
  const { port, certificate, ability } = place
  const listen = `listen 127.0.0.1:${port}${certificate === undefined ? '' : ' ssl'} backlog=4096;
    server_name ${SERVER_NAME};${certificate === undefined ? '' : secured(certificate)}`
  const [upstreams, locations] = (ability in routes ? routes[ability as keyof typeof routes] : routes.requests)(place)
  return `${upstreams}
  server {
    ${listen}
    ${locations}
  }`
}

/** TLS 1.3 is not among the defaults of this release; without a request its tickets and curves are. */
function secured({ chainFile, keyFile }: Certificate): string {
  return `
    ssl_certificate ${chainFile}; ssl_certificate_key ${keyFile}; ssl_protocols TLSv1.2 TLSv1.3;`
}

function toDownloads(certificate: Certificate | undefined): string {
  if (certificate === undefined) return 'proxy_pass http://downloads;'
  return `proxy_pass https://downloads; proxy_ssl_protocols TLSv1.3; proxy_ssl_verify on;
      proxy_ssl_trusted_certificate ${certificate.chainFile}; proxy_ssl_name ${SERVER_NAME};`
}

type Routes = (place: Place) => readonly [upstreams: string, locations: string]

const routes: Readonly<Record<'requests' | 'tunnels' | 'fail-over' | 'chain' | 'secured', Routes>> = {
  requests: ({ downloadPort, uploadPort, backendCertificate }) => [
    `upstream downloads { server 127.0.0.1:${downloadPort}; ${KEEP} }
  upstream uploads { server 127.0.0.1:${uploadPort}; ${KEEP} }`,
    `location /bench/ { ${toDownloads(backendCertificate)} }
    location /upload/ { proxy_pass http://uploads; }`,
  ],
  // Fields set in a location replace all those set above it.
  tunnels: ({ echoPort }) => [
    `upstream echo { server 127.0.0.1:${echoPort}; }`,
    `location /ws/ {
      proxy_pass http://echo; proxy_read_timeout 3600s; proxy_send_timeout 3600s;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }`,
  ],
  // What the gateway answers itself is answered here, in as few words.
  chain: ({ downloadPort }) => [
    `upstream downloads { server 127.0.0.1:${downloadPort}; ${KEEP} }
  default_type application/json;`,
    `location /chain/ { proxy_pass http://downloads; }
    location = /chain/1.0.0/customers/4711 {
      if ($request_method = OPTIONS) {
        add_header Access-Control-Allow-Origin "*"; add_header Access-Control-Allow-Methods "GET, POST";
        add_header Access-Control-Allow-Headers "authorization, Content-Type"; return 204;
      }
      add_header Allow GET always; return 405 '${refusal(405)}';
    }
    location /chain/1.0.0/nothing/ { return 403 '${refusal(403)}'; }
    location / { return 404 '${refusal(404)}'; }`,
  ],
  // Bare: what a proxy costs that asks nobody for anything.
  secured: ({ downloadPort }) => [
    `upstream downloads { server 127.0.0.1:${downloadPort}; ${KEEP} }`,
    'location /chain/ { proxy_pass http://downloads; }',
  ],
  'fail-over': ({ twinPorts }) => {
    const servers = twinPorts.map(
      port => `server 127.0.0.1:${port} max_fails=1 fail_timeout=${TWINS.suspendMs / 1000}s;`,
    )
    return [
      `upstream twins { ${servers.join(' ')} ${KEEP} }`,
      `location /twins/ {
      proxy_pass http://twins; proxy_connect_timeout ${TWINS.timeoutMs}ms; proxy_read_timeout ${TWINS.timeoutMs}ms;
    }`,
    ]
  },
}

function refusal(code: number): string {
  return JSON.stringify({ fault: { code, type: 'Status report', message: 'Refused', description: 'What is wrong' } })
}

function version(): string {
  return spawnSync(findExecutable('nginx')!, ['-v'], { encoding: 'utf8' }).stderr.replace('nginx version:', '').trim()
}

async function start(name: string, place: Place, buffers: string): Promise<Program> {
  const file = `${place.folder}/nginx.conf`
  writeFileSync(file, configuration(place, buffers))
  const command = [findExecutable('nginx')!, '-e', 'stderr', '-p', place.folder, '-c', file]
  const program = new Program(name, pinned(PROXY_CORE, command))
  await program.accepting(place.port)
  return program
}

function missing(): string | undefined {
  return findExecutable('nginx') === undefined ? 'not installed: apt-get install nginx' : undefined
}

const ABILITIES = ['requests', 'tls', 'tls-backend', 'handshakes', 'tunnels', 'fail-over', 'chain', 'secured'] as const

export const NGINX: readonly Peer[] = [
  { name: 'nginx', abilities: ABILITIES, missing, version, start: place => start('nginx', place, '') },
  {
    name: 'nginx-64k',
    abilities: ['requests'],
    forBodiesOnly: true,
    missing,
    version,
    start: place => start('nginx-64k', place, LARGE_BUFFERS),
  },
]
