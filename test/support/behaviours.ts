/**
 * The behaviours that the broker promises, by id: L lease store, R container runtime, A acquire, T timers and reaping,
 * C capacity and spares, S shutdown, H HTTP, G configuration. Test titles name them in brackets.
 */

/** Need the real thing to be proved: a Docker engine, a Redis server, two broker processes. */
// biome-ignore format: one row a group
export const REAL: readonly string[] = [
  'L-18', 'L-19', 'L-20', 'L-21', 'L-22', 'L-25',
  'R-01', 'R-02', 'R-06', 'R-07', 'R-08', 'R-09', 'R-10', 'R-11', 'R-12', 'R-13', 'R-16', 'R-17',
  'R-18', 'R-19', 'R-20',
  'A-01', 'A-02', 'A-03', 'A-04', 'A-05', 'A-06', 'A-08', 'A-09', 'A-10', 'A-12', 'A-13', 'A-14',
  'A-15', 'A-16', 'A-19',
  'T-03', 'T-06', 'T-07', 'T-08', 'T-10', 'T-11', 'T-12', 'T-14', 'T-17', 'T-19', 'T-20',
  'C-01', 'C-02', 'C-05', 'C-06', 'C-07',
  'S-01', 'S-02', 'S-03',
  'H-06', 'H-07',
];

/** Can be proved without any of these; those of the lease store are proved with Redis as well. */
// biome-ignore format: one row a group
export const HERMETIC: readonly string[] = [
  'L-01', 'L-02', 'L-03', 'L-04', 'L-05', 'L-06', 'L-07', 'L-08', 'L-09', 'L-10', 'L-11', 'L-12',
  'L-13', 'L-14', 'L-15', 'L-16', 'L-17', 'L-23', 'L-24', 'L-26', 'L-27', 'L-28', 'L-29', 'L-30',
  'L-31',
  'R-03', 'R-04', 'R-05', 'R-14', 'R-15', 'R-21', 'R-22',
  'A-07', 'A-11', 'A-17', 'A-18',
  'T-01', 'T-02', 'T-04', 'T-05', 'T-09', 'T-13', 'T-15', 'T-16', 'T-18',
  'C-03', 'C-04',
  'S-04', 'S-05',
  'H-01', 'H-02', 'H-03', 'H-04', 'H-05', 'H-08', 'H-09',
  'G-01', 'G-02', 'G-03', 'G-04', 'G-05', 'G-06', 'G-07',
];
