/** `[apim.cors]`: what pages of other origins may do. */
import { isAnyOrigin, isEverybodys } from '../any-origin.ts'
import { CORS_LINE_LIMIT, fitsCorsLine } from '../cors-line.ts'
import { except, live, section } from '../key.ts'
import { duration, fieldNames, flag, words } from '../kinds.ts'

const DAY_S = 86_400

const methods = fieldNames(['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'], 'Methods a preflight may be granted.')

export const cors = section(
  'apim.cors',
  'What pages of other origins may do; the gateway answers preflight requests itself, and backends never see them. ' +
    'An API that says something of CORS itself goes by that.',
  {
    enable: live(flag(true, 'Answer preflight requests and add CORS fields to responses.')),
    allow_origins: live(
      words(['*'], 'Origins that may read responses; `*` is any, `https://*.example.com` any that begin and end so.'),
    ),
    // RFC 9110 9.1: a method is a token, as the name of a field is.
    allow_methods: live({
      ...methods,
      kind: 'methods',
      expects: 'methods such as "GET", a list or one text with commas',
    }),
    allow_headers: live(
      fieldNames(
        ['authorization', 'Access-Control-Allow-Origin', 'Content-Type', 'SOAPAction'],
        'Fields of a request that a preflight may be granted.',
      ),
    ),
    allow_credentials: live(flag(false, 'Let browsers send cookies and credentials along; needs origins by name.')),
    expose_headers: live(fieldNames([], 'Fields of a response that pages may read beside the usual ones.')),
    max_age: live(
      except(
        -1,
        "the browser's own",
        duration(-1, 's', 0, DAY_S, 'How long a browser may keep what it was answered to a preflight request.'),
      ),
    ),
  },
  {
    roles: ['gateway-worker'],
    readBy: ['primary/planning.ts'],
    rules: [
      {
        keys: ['allow_credentials', 'allow_origins'],
        must: 'allow_origins must name its origins where allow_credentials is true: any page could act for its visitor',
        severity: 'fault',
        holds: it => !it.allow_credentials || !it.allow_origins.some(isAnyOrigin),
      },
      {
        keys: ['allow_credentials', 'allow_origins'],
        must: 'nobody gets credentials by an origin that is everybody\'s, as "null" and "https://*" are',
        severity: 'warning',
        holds: it =>
          !it.allow_credentials || !it.allow_origins.some(origin => isEverybodys(origin) && !isAnyOrigin(origin)),
      },
      {
        keys: ['allow_headers'],
        must: `allow_headers must be ${CORS_LINE_LIMIT}`,
        severity: 'fault',
        holds: it => fitsCorsLine(it.allow_headers),
      },
      {
        keys: ['allow_methods'],
        must: `allow_methods must be ${CORS_LINE_LIMIT}`,
        severity: 'fault',
        holds: it => fitsCorsLine(it.allow_methods),
      },
      {
        keys: ['expose_headers'],
        must: `expose_headers must be ${CORS_LINE_LIMIT}`,
        severity: 'fault',
        holds: it => fitsCorsLine(it.expose_headers),
      },
      {
        keys: ['allow_origins'],
        must: 'an origin is a scheme, a host and perhaps a port: with a slash behind it, it equals none',
        severity: 'warning',
        holds: it => !it.allow_origins.some(origin => /:\/\/.*\//.test(origin)),
      },
      {
        keys: ['allow_origins'],
        must: 'a star at the end of a host lets in whoever owns a domain that begins so',
        severity: 'warning',
        holds: it => !it.allow_origins.some(origin => /:\/\/.*[^/:*]\*+$/.test(origin)),
      },
    ],
  },
)
