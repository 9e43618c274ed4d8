/** `[apim.cors]`: what pages of other origins may do. */
import { allInert, section } from '../key.ts'
import { fieldNames, flag, words } from '../kinds.ts'

const CORS = 'not built yet: CORS'

const methods = fieldNames(['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'], 'Methods a preflight may be granted.')

export const cors = section(
  'apim.cors',
  'What pages of other origins may do; the gateway answers preflight requests itself, and backends never see them.',
  allInert(
    {
      enable: flag(true, 'Answer preflight requests and add CORS fields to responses.'),
      allow_origins: words(['*'], 'Origins that may read responses; `*` is any.'),
      // RFC 9110 9.1: a method is a token, as the name of a field is.
      allow_methods: { ...methods, kind: 'methods', expects: 'methods such as "GET", a list or one text with commas' },
      allow_headers: fieldNames(
        ['authorization', 'Access-Control-Allow-Origin', 'Content-Type', 'SOAPAction'],
        'Fields of a request that a preflight may be granted.',
      ),
      allow_credentials: flag(false, 'Let browsers send cookies and credentials along; needs origins by name.'),
    },
    CORS,
  ),
  {
    roles: ['gateway-worker'],
    rules: [
      {
        keys: ['allow_credentials', 'allow_origins'],
        must: 'allow_origins must name its origins where allow_credentials is true: any page could act for its visitor',
        severity: 'fault',
        holds: it => !it.allow_credentials || !it.allow_origins.includes('*'),
      },
      {
        keys: ['allow_origins'],
        must: 'an origin is a scheme, a host and perhaps a port: with a slash behind it, it equals none',
        severity: 'warning',
        holds: it => !it.allow_origins.some(origin => /:\/\/.*\//.test(origin)),
      },
    ],
  },
)
