/** Targets that might reach a restricted resource under another name, and the outcome that the gateway must give. */

/** The matched resource (restricted or open), no matching API (404), or a refused target (400). */
export type PathOutcome = 'restricted' | 'open' | 'unrouted' | 'refused'

/** Targets by outcome, without the context; "=" marks a whole target. */
export const PATH_TRICKS: Readonly<Record<PathOutcome, readonly string[]>> = {
  restricted: [
    ...['/restricted', '/restricted/', '/restricted/x', '/restricted?x', '/restricted/?x', '/restricted/x/y/z'],
    // Encoded letters, with digits in either case.
    ...['/%72estricted', '/restricte%64', '/%72%65%73%74%72%69%63%74%65%64', '/restr%69cted/x', '/%72estricted/'],
    ...['/restricted/%2e', '/restricted/%2E/', '/restricted/./x', '/restricted/.'],
    // Slashes.
    ...['//restricted', '///restricted', '/restricted//', '/restricted//x', '//restricted//x//', '/./restricted'],
    ...[
      '/.//restricted',
      '//./restricted',
      '/././restricted',
      '=//shop//1.0.0//restricted',
      '=/shop/1.0.0//restricted',
    ],
    // Dots.
    ...['/open/../restricted', '/open/../restricted/x', '/open/%2e%2e/restricted', '/open/.%2e/restricted'],
    ...['/open/%2e./restricted', '/open/%2E%2E/restricted', '/a/b/../../restricted', '/a/../b/../restricted'],
    ...['/a//../restricted', '/restricted/x/..', '/restricted/x/../', '/restricted/x/../y', '/./open/.././restricted'],
    ...['/%2e/restricted', '/%2E/%2e/restricted', '/a/./../restricted', '/a%20b/../restricted', '/"/../restricted'],
    ...['=/shop/2.0.0/../1.0.0/restricted', '=/x/../shop/1.0.0/restricted', '=/./shop/./1.0.0/./restricted'],
    ...['=/sho%70/1.0.0/restricted', '=/shop/1%2e0.0/restricted', '=/%73hop/%31.0.0/%72estricted'],
    ...['=/shop/1.0.0/open/%2e%2e/%72estricted', '=/%2e/shop/1.0.0/restricted', '=/shop/1.0.0/../1.0.0/restricted'],
    // The query does not affect the path.
    ...['/restricted?/../open', '/restricted?a=%2f..%2fopen', '/restricted??', '/restricted/.?x'],
    ...['/restricted?%zz', '/restricted?;a=b', '/restricted?\\', '/restricted/x?%00', '/restricted?a=/./b//c'],
    // Unusual names below the restricted resource.
    ...['/restricted/caf%c3%a9', '/restricted/{x}', '/restricted/a+b', '/restricted/a%2bb'],
    ...['/restricted/...', '/restricted/..x', '/restricted/%25', '/restricted/%3F', '/restricted/%23'],
    // Absolute-form; the authority does not affect routing.
    ...['=http://gateway.test/shop/1.0.0/restricted', '=http://evil.test/shop/1.0.0/open/../restricted'],
    ...['=HTTP://gateway.test:8290/shop/1.0.0//restricted', '=http://gateway.test/shop/1.0.0/%72estricted?x'],
    ...['=http://gateway.test//shop/1.0.0/restricted', '=http://gateway.test/./shop/1.0.0/restricted'],
    '=http://gateway.test/a/../shop/1.0.0/restricted',
  ],
  open: [
    ...['', '/', '?restricted', '/?/restricted', '/open', '/open/restricted', '/open/x/../restricted', '/open/'],
    // Other names: nothing is trimmed, and case is significant.
    ...['/Restricted', '/RESTRICTED', '/%52estricted', '/restricted2', '/restricte', '/restricted.', '/restricted..'],
    ...[
      '/restricted.json',
      '/restricted%20',
      '/%20restricted',
      '/restricted+',
      '/restricted%2B',
      '/restricted~',
      '/.restricted',
    ],
    ...[
      '/..restricted',
      '/...',
      '/.../restricted',
      '/restricted...',
      '/restricted:8080',
      '/restricted@x',
      '/restricted,x',
    ],
    ...[
      '/restricted=x',
      '/restricted&x',
      '/restricted$',
      '/restricted!',
      "/restricted'",
      '/restricted*',
      '/(restricted)',
    ],
    // Characters similar to "?", "#", "/" and the letters.
    ...[
      '/restricted%3Fx',
      '/restricted%3f',
      '/restricted%23',
      '/restricted%3Fa=b%26c',
      '/%3Frestricted',
      '/restricted%25',
    ],
    ...['/%EF%BC%8Frestricted', '/restricted%E2%88%95x', '/restricted%EF%BC%8Fx', '/%E2%80%A4%E2%80%A4/restricted'],
    ...['/%EF%BC%8E%EF%BC%8E/restricted', '/%EF%BD%92estricted', '/r%C3%A9stricted', '/restricted%C2%A0'],
    ...[
      '/restricted"',
      '/restricted%22',
      '/restricted<',
      '/restricted|',
      '/{restricted}',
      '/[restricted]',
      '/restricted^',
    ],
    // Dot segments that leave the restricted resource.
    ...[
      '/restricted/..',
      '/restricted/../',
      '/restricted/../open',
      '/restricted/%2e%2e/open',
      '/restricted/x/../../open',
    ],
    ...[
      '/restricted/.%2E',
      '/restricted//..',
      '/restricted/./..',
      '/restricted/../restricted2',
      '/restricted/../?/restricted',
    ],
    ...[
      '/open?x=/restricted',
      '/open?/../restricted',
      '/open?%2e%2e%2frestricted',
      '/open?;/restricted',
      '/open?\\restricted',
    ],
    ...[
      '=/shop/1.0.0?/restricted',
      '=http://gateway.test/shop/1.0.0?/restricted',
      '=http://restricted.test/shop/1.0.0/',
    ],
    ...['=http://gateway.test/shop/1.0.0', '=/shop/1.0.0/shop/1.0.0/restricted'],
  ],
  unrouted: [
    ...['/../restricted', '/..', '/../', '/%2e%2e/restricted', '/open/../../restricted', '/restricted/../../x'],
    ...['=/restricted', '=//restricted', '=/shop', '=/shop/', '=/shop/1.0.0x/restricted', '=/SHOP/1.0.0/restricted'],
    ...['=/shop%20/1.0.0/restricted', '=/x/shop/1.0.0/restricted', '=/?/shop/1.0.0/restricted', '=http://gateway.test'],
    ...[
      '=http://gateway.test?/shop/1.0.0/restricted',
      '=http://shop/1.0.0/restricted',
      '=/http://gateway.test/shop/1.0.0/x',
    ],
    ...[
      '=/shop/1.0.0+/restricted',
      '=/shop%3F/1.0.0/restricted',
      '/../1.0.0%20/restricted',
      '=/shop/%31.0.1/restricted',
    ],
  ],
  refused: [
    // Above the root.
    ...['=/../shop/1.0.0/restricted', '=/..', '/../../../restricted', '=/%2e%2e/shop/1.0.0/restricted', '=//../x'],
    ...['=http://gateway.test/../shop/1.0.0/restricted', '/../../%2e%2e/etc/passwd'],
    // Encoded slashes, and backslashes.
    ...[
      '/open%2f..%2frestricted',
      '/open%2F..%2Frestricted',
      '/%2frestricted',
      '/restricted%2f',
      '/restricted%2Fx',
      '%2frestricted',
    ],
    ...['/open/..%2frestricted', '/open%2f../restricted', '/open/..%5crestricted', '/%5crestricted', '/restricted%5C'],
    ...[
      '/\\restricted',
      '/restricted\\x',
      '/open\\..\\restricted',
      '/open/..\\restricted',
      '\\restricted',
      '/..%5c..%5crestricted',
    ],
    ...[
      '=/shop%2f1.0.0/restricted',
      '=/shop%2F1.0.0%2Frestricted',
      '=/shop\\1.0.0\\restricted',
      '=\\shop\\1.0.0\\restricted',
    ],
    // Matrix parameters.
    ...[
      '/restricted;',
      '/restricted;a=b',
      '/restricted;a=b/x',
      '/;/restricted',
      '/;a=b/restricted',
      '/restricted%3B',
      '/restricted%3ba',
    ],
    ...[
      '/..;/restricted',
      '/open/..;/restricted',
      '/open/..;a=b/restricted',
      '/.;/restricted',
      '/%2e%2e;/restricted',
      '/..%3b/restricted',
    ],
    ...['=/shop;x/1.0.0/restricted', '=/shop/1.0.0;/restricted', ';/restricted'],
    // Double percent-encodings.
    ...[
      '/%2572estricted',
      '/restricted%252f',
      '/open%252f..%252frestricted',
      '/%252e%252e/restricted',
      '/restricted%253Fx',
    ],
    ...[
      '/%25252e%25252e/restricted',
      '/%25%32%65%25%32%65/restricted',
      '/restricted%25%33%46',
      '/%25%37%32estricted',
      '/%%37%32estricted',
    ],
    ...['/restricted%253b', '/restricted%2500', '/open%255c..%255crestricted', '/restricted%2525'],
    // Invalid percent-encodings.
    ...[
      '/restricted%',
      '/restricted%2',
      '/%restricted',
      '/restricted%zz',
      '/%u0072estricted',
      '/restricted%u002f',
      '/%7',
      '/%x72estricted',
    ],
    ...['/restricted%/x', '/%-1', '/% 72estricted', '/restricted%%32%66', '/%c'],
    // Invalid UTF-8: overlong, truncated, surrogates, beyond Unicode.
    ...[
      '/open%c0%af..%c0%afrestricted',
      '/%c0%ae%c0%ae/restricted',
      '/%C0%AF',
      '/%e0%80%afrestricted',
      '/%f0%80%80%afrestricted',
    ],
    ...[
      '/%c1%b2estricted',
      '/%C1%B2%C1%A5',
      '/%c0%ae/restricted',
      '/%e0%80%ae%e0%80%ae/restricted',
      '/%F8%80%80%80%AF',
      '/%FC%80%80%80%80%AE',
    ],
    ...[
      '/restricted%ff',
      '/restricted%C3',
      '/restricted%E2%82',
      '/restricted\xe9',
      '/restricted\xff',
      '/%ED%A0%80',
      '/%F4%90%80%80',
      '/\xc0\xae\xc0\xae/restricted',
    ],
    ...['/restricted%C3/%A9', '/restricted%A9', '/%c0%2e%c0%2e/restricted', '/restricted\xa0'],
    // Control characters, encoded or not.
    ...[
      '/restricted%00',
      '/restricted%00.json',
      '/%00restricted',
      '/open%00/../restricted',
      '/restricted%0a',
      '/restricted%0d%0aX:%20y',
    ],
    ...[
      '/restricted%09',
      '/restricted%7f',
      '/restricted%1f',
      '/%08/restricted',
      '/restricted\t',
      '/restricted\x7f',
      '/restricted\x0b',
      '/restricted\x01',
      '/restricted\0',
    ],
    // Fragments and spaces.
    ...[
      '/restricted#',
      '/open#/../restricted',
      '/restricted#x?y',
      '#/restricted',
      '?x#/restricted',
      '/restricted x',
      '/ restricted',
    ],
    // Absolute-form with userinfo, another scheme or an invalid authority, and other invalid forms.
    ...[
      '=http://user@gateway.test/shop/1.0.0/restricted',
      '=http:/shop/1.0.0/restricted',
      '=http:///shop/1.0.0/restricted',
    ],
    ...[
      '=https://gateway.test/shop/1.0.0/restricted',
      '=gateway.test/shop/1.0.0/restricted',
      '=http://gateway.test\\shop/1.0.0/restricted',
    ],
    ...[
      '=shop/1.0.0/restricted',
      '=../shop/1.0.0/restricted',
      '=*/restricted',
      '=*',
      // llhttp refuses bytes beyond ASCII, valid UTF-8 or not.
      '/r\xc3\xa9stricted',
      '/restricted/caf\xc3\xa9',
    ],
  ],
}
