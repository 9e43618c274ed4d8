/** Forward proxies, one row each, for plain backends and for backends on TLS. */
import { live, repeatedSection, required, type Rule, type Values } from '../key.ts'
import { integer, host, secret, text, list } from '../kinds.ts'

const row = {
  target_hosts: live(
    required(list([], 'Backends behind this proxy: host names, IP addresses, patterns, or `*` for all.')),
  ),
  proxy_host: live(required(host('', 'Host of the proxy.'))),
  proxy_port: live(required(integer(0, '', 1, 65_535, 'Port of the proxy.'))),
  proxy_username: live(text('', 'User name for the proxy; empty: no credentials.')),
  proxy_password: live(secret('Password of `proxy_username`.')),
  bypass_hosts: live(list([], 'Backends that bypass this proxy, written like `target_hosts`.')),
}

const RULES: readonly Rule<Values<typeof row>>[] = [
  {
    keys: ['proxy_password', 'proxy_username'],
    must: 'proxy_password needs a proxy_username: a password alone is never sent',
    severity: 'error',
    holds: it => it.proxy_password === '' || it.proxy_username !== '',
  },
  {
    keys: ['proxy_username', 'proxy_password'],
    must: 'proxy_username is sent with an empty password',
    severity: 'warning',
    holds: it => it.proxy_username === '' || it.proxy_password !== '',
  },
]

export const proxyProfile = repeatedSection(
  'transport.http.proxy_profile',
  'A forward proxy for backends on plain HTTP; the first row that matches a backend is used, `*` after all others.',
  row,
  { rules: RULES, roles: ['gateway-worker'] },
)

export const securedProxyProfile = repeatedSection(
  'transport.http.secured_proxy_profile',
  'A forward proxy (CONNECT) for backends on TLS; the first row that matches a backend is used, `*` after all others.',
  row,
  { rules: RULES, roles: ['gateway-worker'] },
)
