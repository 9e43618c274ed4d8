/**
 * nginx as a reverse proxy: one worker, or two on two processors, upstream keep-alive, no temporary files for bodies,
 * default buffers. A variant for large bodies has buffers of 64 KiB like the gateway, which makes nginx faster.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Certificate, SERVER_NAME } from '../certificate.ts'
import { findExecutable, Program, pinned } from '../program.ts'
import type { Capability } from '../scenarios.ts'
import { type Peer, type PeerOptions, FAIL_OVER_SETTINGS, isMediating, workersOf } from './peer.ts'

const LARGE_BUFFERS = `proxy_buffers 16 64k; proxy_buffer_size 16k; proxy_busy_buffers_size 256k;
  client_body_buffer_size 64k;`
const TRANSFORM = fileURLToPath(new URL('nginx-transform.njs', import.meta.url))
/** Where Debian puts the module. */
const NJS_MODULE = '/usr/lib/nginx/modules/ngx_http_js_module.so'
const KEEP_ALIVE = 'keepalive 128; keepalive_requests 1000000000; keepalive_timeout 3600s;'

function configuration(options: PeerOptions, buffers: string): string {
  const { folder } = options
  return `${isMediating(options.capability) ? `load_module ${NJS_MODULE};\n` : ''}\
daemon off; pid ${folder}/nginx.pid; error_log stderr crit; worker_processes ${workersOf(options.capability).workers};
worker_rlimit_nofile ${2 * workerConnections(options)};
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections ${workerConnections(options)}; }
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
  ${isMediating(options.capability) ? `js_import transform from ${TRANSFORM};` : ''}
  ${buffers}
  ${server(options)}
}
`
}

/** As few as a scenario needs, because nginx allocates memory for all of them at its start; a tunnel needs two. */
function workerConnections({ capability }: PeerOptions): number {
  return capability === 'tunnels' ? 24_576 : 16_384
}

function server(options: PeerOptions): string {
  const { port, certificate, capability } = options
  const listen = `listen 127.0.0.1:${port}${certificate === undefined ? '' : ' ssl'} backlog=4096;
    server_name ${SERVER_NAME};${certificate === undefined ? '' : tlsSettings(certificate)}`
  const kind = isMediating(capability) ? 'mediation' : capability
  const [upstreams, locations] = (kind in routes ? routes[kind as keyof typeof routes] : routes.requests)(options)
  return `${upstreams}
  server {
    ${listen}
    ${locations}
  }`
}

/** TLS 1.3 must be enabled, because nginx before 1.23.4 does not by default. */
function tlsSettings({ chainFile, keyFile }: Certificate): string {
  return `
    ssl_certificate ${chainFile}; ssl_certificate_key ${keyFile}; ssl_protocols TLSv1.2 TLSv1.3;`
}

function upstream(name: string, port: number): string {
  return `upstream ${name} { server 127.0.0.1:${port}; ${KEEP_ALIVE} }`
}

function downloadPass(certificate: Certificate | undefined): string {
  if (certificate === undefined) return 'proxy_pass http://downloads;'
  return `proxy_pass https://downloads; proxy_ssl_protocols TLSv1.3; proxy_ssl_verify on;
      proxy_ssl_trusted_certificate ${certificate.chainFile}; proxy_ssl_name ${SERVER_NAME};`
}

type Routes = (options: PeerOptions) => readonly [upstreams: string, locations: string]

type RouteKind = 'requests' | 'tunnels' | 'fail-over' | 'chain' | 'secured' | 'refused' | 'mediation'

const routes: Readonly<Record<RouteKind, Routes>> = {
  requests: ({ downloadPort, uploadPort, backendCertificate }) => [
    `${upstream('downloads', downloadPort)}
  ${upstream('uploads', uploadPort)}`,
    `location /bench/ { ${downloadPass(backendCertificate)} }
    location /upload/ { proxy_pass http://uploads; }`,
  ],
  // A proxy_set_header in a location replaces all those of outer levels.
  tunnels: ({ echoPort }) => [
    `upstream echo { server 127.0.0.1:${echoPort}; }`,
    `location /ws/ {
      proxy_pass http://echo; proxy_read_timeout 3600s; proxy_send_timeout 3600s;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }`,
  ],
  // Responses that correspond to those of the gateway itself.
  chain: ({ downloadPort }) => [
    `${upstream('downloads', downloadPort)}
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
  // Passes everything on without checks, for comparison.
  secured: ({ downloadPort }) => [
    upstream('downloads', downloadPort),
    'location /chain/ { proxy_pass http://downloads; }',
  ],
  // The limit is one request a minute and address, so the first passes. The page of nginx is its cheapest response.
  refused: ({ downloadPort }) => [
    `limit_req_zone $binary_remote_addr zone=refused:1m rate=1r/m;
  ${upstream('downloads', downloadPort)}`,
    'location /bench/ { limit_req zone=refused; limit_req_status 429; proxy_pass http://downloads; }',
  ],
  // The body must be in one piece in memory for njs.
  mediation: ({ downloadPort, uploadPort }) => [
    `${upstream('downloads', downloadPort)}
  ${upstream('uploads', uploadPort)}`,
    `location /bench/ { proxy_pass http://downloads; }
    location /mediation/ {
      client_body_buffer_size 64k; client_body_in_single_buffer on; js_content transform.transform;
    }
    location /passed/ { internal; subrequest_output_buffer_size 64k; proxy_pass http://uploads/; }`,
  ],
  'fail-over': ({ replicaPorts }) => {
    const { timeoutMs, suspendMs } = FAIL_OVER_SETTINGS
    const servers = replicaPorts.map(port => `server 127.0.0.1:${port} max_fails=1 fail_timeout=${suspendMs / 1000}s;`)
    return [
      `upstream replicas { ${servers.join(' ')} ${KEEP_ALIVE} }`,
      `location /replicas/ {
      proxy_pass http://replicas; proxy_connect_timeout ${timeoutMs}ms; proxy_read_timeout ${timeoutMs}ms;
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

async function start(name: string, options: PeerOptions, buffers: string): Promise<Program> {
  const file = `${options.folder}/nginx.conf`
  writeFileSync(file, configuration(options, buffers))
  const command = [findExecutable('nginx')!, '-e', 'stderr', '-p', options.folder, '-c', file]
  const program = new Program(name, pinned(workersOf(options.capability).cores, command))
  await program.waitForPort(options.port)
  return program
}

function missing(capability: Capability = 'requests'): string | undefined {
  if (findExecutable('nginx') === undefined) return 'not installed: apt-get install nginx'
  if (!isMediating(capability) || existsSync(NJS_MODULE)) return undefined
  return 'njs is not installed: apt-get install libnginx-mod-http-js'
}

const CAPABILITIES = [
  'requests',
  'two-cores',
  'tls',
  'tls-backend',
  'handshakes',
  'tunnels',
  'fail-over',
  'chain',
  'secured',
  'hot-path',
  'refused',
  'mediation',
  'mediation-delay',
] as const

export const NGINX: readonly Peer[] = [
  { name: 'nginx', capabilities: CAPABILITIES, missing, version, start: options => start('nginx', options, '') },
  {
    name: 'nginx-64k',
    capabilities: ['requests'],
    largeBodiesOnly: true,
    missing,
    version,
    start: options => start('nginx-64k', options, LARGE_BUFFERS),
  },
]
